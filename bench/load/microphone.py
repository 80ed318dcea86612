"""The microphone of a session with ears: somebody says a phrase about every ten seconds, and else the room is heard.

Nothing here needs more than numpy: the peers' environment feeds the same sound to the peers.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

HZ: Final = 16_000
FRAME_MS: Final = 20
FRAME_BYTES: Final = 2 * HZ * FRAME_MS // 1000
STEP_FRAMES: Final = 8
"""A phrase begins at a whole step, 160 ms: there the frames of 32 ms that a voice activity model hears begin too."""
EVERY_FRAMES: Final = 63 * STEP_FRAMES
SOONER_STEPS: Final = 7
"""Nobody is so regular: a phrase comes up to this much sooner, or later."""

_ROOM_FRAMES: Final = 200
_ROOM_LEVEL: Final = 8.0
"""-72 dBFS, as the noise in the phrases."""


@dataclass(frozen=True, slots=True)
class Recording:
    text: str
    frames: Sequence[bytes]

    @property
    def pcm(self) -> bytes:
        return b"".join(self.frames)


def load_recordings(folder: Path) -> list[Recording]:
    texts: list[str] = json.loads((folder / "texts.json").read_text())
    return [Recording(text, cut((folder / f"{place}.pcm").read_bytes())) for place, text in enumerate(texts)]


def cut(pcm: bytes) -> list[bytes]:
    return [pcm[at : at + FRAME_BYTES] for at in range(0, len(pcm), FRAME_BYTES)]


@cache
def room() -> Sequence[bytes]:
    """Some seconds of nothing but noise."""
    samples = np.random.default_rng(0).normal(0, _ROOM_LEVEL, _ROOM_FRAMES * FRAME_BYTES // 2)
    return cut(samples.astype(np.int16).tobytes())


class Microphone:
    def __init__(self, begin: Callable[[], Recording], first_at: int, chance: Random) -> None:
        """`begin` is asked for a phrase whenever one is due; the first is after so many frames, whole steps of them."""
        self.at = -1
        """The place of the last frame, counted from the first of its phrase."""
        self._begin = begin
        self._frames: Sequence[bytes] = ()
        self._next_at = first_at
        self._chance = chance
        self._room = room()

    def record(self) -> bytes:
        """The next 20 ms."""
        self.at += 1
        if self.at == self._next_at:
            self._frames = self._begin().frames
            self.at = 0
            self._next_at = EVERY_FRAMES + STEP_FRAMES * self._chance.randint(-SOONER_STEPS, SOONER_STEPS)
        if self.at < len(self._frames):
            return self._frames[self.at]
        return self._room[self.at % len(self._room)]
