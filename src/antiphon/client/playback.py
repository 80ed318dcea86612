"""What a loudspeaker plays next, and what it has played. The event loop puts in, the sound card's thread takes out."""

from collections import deque
from threading import Lock
from typing import Final

from antiphon.protocol import limits

OUTPUT_HZ: Final = limits.SPEECH_HZ
BYTES_PER_S: Final = 2 * OUTPUT_HZ
TAIL_BYTES: Final = BYTES_PER_S * 3 // 20
"""0.15 s: what a sound card was given last is heard a little later."""


class Playback:
    """Speech of one answer after another: PCM16, 22,050 Hz, mono."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[bytes] = deque()
        self._turn = 0
        self._played_bytes = 0
        self._silent_bytes = TAIL_BYTES
        """Taken since the last sound."""

    def add(self, turn: int, pcm: bytes) -> None:
        with self._lock:
            if turn != self._turn:
                self._turn, self._played_bytes = turn, 0
            self._waiting.append(pcm)

    def take(self, size_bytes: int) -> bytes:
        """So much of what is next, with silence after its end."""
        taken = bytearray()
        with self._lock:
            while self._waiting and len(taken) < size_bytes:
                piece = self._waiting.popleft()
                room = size_bytes - len(taken)
                taken += piece[:room]
                if piece[room:]:
                    self._waiting.appendleft(piece[room:])
            self._played_bytes += len(taken)
            self._silent_bytes = 0 if len(taken) == size_bytes else self._silent_bytes + size_bytes
        return bytes(taken.ljust(size_bytes, b"\0"))

    def clear(self) -> None:
        """Nothing more of this answer is heard."""
        with self._lock:
            self._waiting.clear()
            self._silent_bytes = TAIL_BYTES

    @property
    def turn(self) -> int:
        """The answer that was put in last."""
        return self._turn

    @property
    def played_ms(self) -> float:
        """Of that answer."""
        return self._played_bytes * 1000 / BYTES_PER_S

    @property
    def is_playing(self) -> bool:
        """Whether a microphone beside the loudspeaker may hear it."""
        with self._lock:
            return bool(self._waiting) or self._silent_bytes < TAIL_BYTES
