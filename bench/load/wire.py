"""The client's side of a WebSocket, reduced to what the load generator needs.

A general library would spend more on sending a frame than the server may spend on receiving it, and the load generator
would be what is measured. The mask is zero, so frames are sent unchanged; the server still has to unmask them.
"""

from collections.abc import Iterator
from struct import Struct as Layout
from typing import Final

TEXT: Final = 0x1
BINARY: Final = 0x2
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA

NORMAL: Final = (1000).to_bytes(2, "big")

_FINAL: Final = 0x80
_MASKED: Final = 0x80
_NO_MASK: Final = bytes(4)
_SHORT: Final = Layout(">BB")
_LONG: Final = Layout(">BBH")
_IS_LONG: Final = 126


def handshake(host: str, port: int) -> bytes:
    lines = (
        "GET /ws HTTP/1.1",
        f"Host: {host}:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlcmUgYXJlIG1hbnkhIQ==",
    )
    return "\r\n".join((*lines, "", "")).encode()


def frame(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < _IS_LONG:
        head = _SHORT.pack(_FINAL | opcode, _MASKED | size)
    else:
        head = _LONG.pack(_FINAL | opcode, _MASKED | _IS_LONG, size)
    return head + _NO_MASK + payload


class Frames:
    """Parses a byte stream into whole frames of less than 64 KiB."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        data = self._rest + data if self._rest else data
        at = 0
        while (body := self._body(data, at)) is not None:
            begin, end = body
            yield data[at] & 0x0F, data[begin:end]
            at = end
        self._rest = data[at:]

    def _body(self, data: bytes, at: int) -> tuple[int, int] | None:
        """Returns where the payload of the frame begins and ends; None if it is incomplete."""
        if len(data) < at + _SHORT.size:
            return None
        begin, size = at + _SHORT.size, data[at + 1]
        if size == _IS_LONG:
            begin += 2
            size = int.from_bytes(data[at + 2 : begin], "big")
        elif size > _IS_LONG:
            raise ValueError("The server sent a frame of 64 KiB or more.")
        end = begin + size
        return (begin, end) if len(data) >= end else None
