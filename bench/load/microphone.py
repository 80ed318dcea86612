"""The microphone of a session whose server listens: a phrase about every ten seconds, and room noise otherwise.

It only needs numpy, so that the peers' environment can feed the same audio to the peers.
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
"""Phrases begin at multiples of 160 ms, where a frame of 32 ms of the voice activity model begins too."""
EVERY_FRAMES: Final = 63 * STEP_FRAMES
SOONER_STEPS: Final = 7
"""People are not regular: a phrase comes up to this much earlier or later."""

_ROOM_FRAMES: Final = 200
_ROOM_LEVEL: Final = 8.0
"""-72 dBFS, like the noise in the phrases."""


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
    """Returns a few seconds of noise."""
    samples = np.random.default_rng(0).normal(0, _ROOM_LEVEL, _ROOM_FRAMES * FRAME_BYTES // 2)
    return cut(samples.astype(np.int16).tobytes())


class Microphone:
    def __init__(self, begin: Callable[[], Recording], first_at: int, chance: Random) -> None:
        """`begin` returns the next phrase. The first comes after `first_at` frames, a multiple of the step."""
        self.at = -1
        """The index of the last frame within its phrase."""
        self._begin = begin
        self._frames: Sequence[bytes] = ()
        self._next_at = first_at
        self._chance = chance
        self._room = room()

    def record(self) -> bytes:
        """Returns the next 20 ms."""
        self.at += 1
        if self.at == self._next_at:
            self._frames = self._begin().frames
            self.at = 0
            self._next_at = EVERY_FRAMES + STEP_FRAMES * self._chance.randint(-SOONER_STEPS, SOONER_STEPS)
        if self.at < len(self._frames):
            return self._frames[self.at]
        return self._room[self.at % len(self._room)]
