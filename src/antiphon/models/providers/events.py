"""Decodes server-sent events, or lines of JSON, from the bytes of a model's server, with a limit on the size of each.

Decoders of SDKs and HTTP clients have no such limit: a line that never ends would fill the memory.
"""

import re
from collections.abc import Iterator
from typing import Final

from antiphon.models.bounded import LimitExceeded

MAX_EVENT_BYTES: Final = 1 << 20
"""The largest event. One chunk may hold a whole answer, or several whole calls."""
TOO_LONG: Final = f"sent a line of more than {MAX_EVENT_BYTES >> 20} MB"

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


class EventDecoder:
    """Decodes one stream: bytes in, the data of each whole event out. An event without its end is dropped."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        """The bytes of the lines and of the unfinished line of this event."""
        self._ended_in_cr = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Raises `LimitExceeded`."""
        for line in self._lines(piece):
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line:
                data, self._data, self._size = self._data, [], 0
                if data:
                    yield b"\n".join(data)

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        start = 1 if self._ended_in_cr and piece.startswith(b"\n") else 0
        for end in _LINE_END.finditer(piece, start):
            self._append(piece[start : end.start()])
            line = bytes(self._line)
            self._line.clear()
            start = end.end()
            yield line
        self._append(piece[start:])
        self._ended_in_cr = piece.endswith(b"\r")

    def _append(self, more: bytes) -> None:
        self._size += len(more)
        if self._size > MAX_EVENT_BYTES:
            raise LimitExceeded(TOO_LONG)
        self._line += more


class LineDecoder:
    """Decodes a stream of one JSON value per line: bytes in, whole lines out. A line without its end is dropped."""

    def __init__(self) -> None:
        self._line = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Raises `LimitExceeded`."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._append(end)
            line = bytes(self._line).strip()
            self._line.clear()
            if line:
                yield line
        self._append(rest)

    def _append(self, more: bytes) -> None:
        if len(self._line) + len(more) > MAX_EVENT_BYTES:
            raise LimitExceeded(TOO_LONG)
        self._line += more
