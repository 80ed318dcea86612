"""The words of one turn, as they become known."""

import asyncio
from typing import Final

import numpy as np
from msgspec import Struct

from antiphon.models.cascade.ear import FRAME_BYTES, PREROLL_FRAMES
from antiphon.speech.base import Recognizer, Urgency

LEAD: Final = bytes(PREROLL_FRAMES * FRAME_BYTES)
CUT_WITHIN_BYTES: Final = 2 * 2 * 16_000
WINDOW_SAMPLES: Final = 800
"""A twentieth of a second."""


class Recognized(Struct, frozen=True):
    text: str
    took_ms: float


class Wording:
    """Of a long turn the older part is known, and its audio gone."""

    def __init__(self, recognizer: Recognizer) -> None:
        self.known_ms = 0.0
        """What it took to recognise the known part."""
        self.shown = ""
        """All of it, as it was last told."""
        self.told: str | None = None
        """The text that was told as final. If the turn goes on after that, there will be another."""
        self._recognizer = recognizer
        self._known: list[str] = []

    async def recognize(self, audio: bytes, urgency: Urgency) -> Recognized:
        """What is said in this audio, which follows on the known part. Raises `SpeechError`."""
        began_s = asyncio.get_running_loop().time()
        # Audio that was cut off from what came before begins with speech, and the first word of that gets lost.
        text = await self._recognizer.recognize(LEAD + audio if self._known else audio, urgency)
        return Recognized(text, (asyncio.get_running_loop().time() - began_s) * 1_000)

    def keep(self, part: Recognized) -> None:
        """This is known now."""
        self._known.append(part.text)
        self.known_ms += part.took_ms

    def join(self, text: str) -> str:
        """All of the turn, with this as its end."""
        return " ".join(filter(None, [*self._known, text]))


def find_cut(audio: bytes) -> int:
    """Where a stretch of speech is best cut: in the middle of the quietest window of its last two seconds."""
    start = max(0, len(audio) - CUT_WITHIN_BYTES)
    samples = np.abs(np.frombuffer(audio, np.int16)[start // 2 :].astype(np.int32))
    windows = samples[: len(samples) - len(samples) % WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES)
    return start + 2 * (WINDOW_SAMPLES * int(windows.sum(axis=1).argmin()) + WINDOW_SAMPLES // 2)
