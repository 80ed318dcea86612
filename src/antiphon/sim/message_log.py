"""The log of every message that passes a simulator, as JSON lines. It is a test tool's log: it has the texts too."""

import json
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TextIO

MAX_KEPT: Final = 5_000
"""How many entries the control port can show; a file gets all of them."""
MAX_TEXT_CHARS: Final = 20_000
"""Enough for the instructions of a client, so that it can be seen what a session was given."""
MIN_AUDIO_CHARS: Final = 64
AUDIO_KEYS: Final = frozenset({"data", "audio", "delta"})
"""The keys under which the providers send base64."""


class MessageLog:
    """Keeps the latest entries, and writes all of them to a file if there is one."""

    def __init__(self, now_s: Callable[[], float], file: TextIO | None = None) -> None:
        self._now_s = now_s
        self._started_s = now_s()
        self._file = file
        self._kept: deque[dict[str, Any]] = deque(maxlen=MAX_KEPT)
        self._last_number = 0

    def add(self, connection: int, event: str, **fields: Any) -> None:
        """Adds an entry. `event` is "client" or "server" for a message, or what happened otherwise."""
        self._last_number += 1
        at_s = round(self._now_s() - self._started_s, 3)
        entry = {"number": self._last_number, "at_s": at_s, "connection": connection, "event": event}
        entry |= {name: shorten(value) for name, value in fields.items() if value is not None}
        self._kept.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            self._file.flush()

    def since(self, number: int = 0) -> list[dict[str, Any]]:
        """Returns the entries after this one that are still kept."""
        return [entry for entry in self._kept if entry["number"] > number]

    def clear(self) -> None:
        self._kept.clear()


def shorten(value: Any, key: str = "") -> Any:
    """Replaces audio by its length, and cuts very long texts."""
    if isinstance(value, dict):
        return {name: shorten(each, str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [shorten(each, key) for each in value]
    if isinstance(value, str):
        if key in AUDIO_KEYS and len(value) >= MIN_AUDIO_CHARS and " " not in value:
            return f"({len(value.rstrip('=')) * 3 // 4} bytes)"
        if len(value) > MAX_TEXT_CHARS:
            return f"{value[:MAX_TEXT_CHARS]}… ({len(value)} characters)"
    return value
