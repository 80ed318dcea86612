"""A mouth, and what came out of it."""

import asyncio
from typing import Final

from antiphon.models.cascade.mouth import Mouth
from antiphon.models.live import GenerationComplete, LiveEvent, OutputAudio, TurnComplete
from tests.fakes.voice import TONE_HZ, Tones

SECONDS: Final = 2 * TONE_HZ
"""Bytes of one."""


class Said:
    """A mouth, and what came out of it."""

    def __init__(self, tones: Tones) -> None:
        self.tones = tones
        self.events: list[LiveEvent] = []
        self.at_s: list[float] = []
        self.mouth = Mouth(tones, "joe", self._note)

    def _note(self, event: LiveEvent) -> None:
        self.events.append(event)
        self.at_s.append(asyncio.get_running_loop().time())

    @property
    def audio(self) -> list[OutputAudio]:
        return [event for event in self.events if isinstance(event, OutputAudio)]

    @property
    def words(self) -> list[str]:
        return "".join(piece.text for piece in self.audio).split()

    @property
    def audio_ms(self) -> float:
        return sum(len(piece.pcm) for piece in self.audio) * 1_000 / SECONDS

    def finish(self) -> None:
        self.mouth.then(GenerationComplete())
        self.mouth.then(TurnComplete())

    async def say(self, *deltas: str) -> None:
        for delta in deltas:
            self.mouth.say(delta)
        self.finish()
        await asyncio.sleep(60)
