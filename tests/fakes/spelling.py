"""A voice whose sound can be read: every character is a stretch of samples that all have its number.

So a test knows what somebody has heard, to the letter, whoever made the sound.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import numpy as np

from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.base import Sound, Urgency, Voice

CHARACTER_MS: Final = 20
_SAMPLES: Final = SPEECH_HZ * CHARACTER_MS // 1_000


def spell(text: str) -> bytes:
    """PCM16 at the wire's rate."""
    return np.repeat(np.array([ord(each) for each in text], dtype="<i2"), _SAMPLES).tobytes()


def read(pcm: bytes) -> str:
    return "".join(map(chr, np.frombuffer(pcm, "<i2")[_SAMPLES // 2 :: _SAMPLES]))


class SpellingVoice:
    """Synthesizes a clause as one chunk, after a short delay."""

    name = "spelling"
    output_hz = SPEECH_HZ
    voices: Sequence[Voice] = (Voice("joe", "Joe", "en-US"),)

    def __init__(self, delay_s: float = 0.05) -> None:
        self._delay_s = delay_s

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        await asyncio.sleep(self._delay_s)
        yield Sound(spell(f"{text} "), 0)

    async def aclose(self) -> None:
        """There is nothing to close."""
