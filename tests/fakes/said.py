"""A speech output, and the events that it emitted."""

import asyncio
from typing import Final

from antiphon.models.cascade.speech_output import SpeechOutput, SpokenAnswer
from antiphon.models.live import GenerationComplete, LiveEvent, OutputAudio, TurnComplete
from tests.fakes.voice import TONE_HZ, Tones

SECONDS: Final = 2 * TONE_HZ
"""The bytes of one second."""
TURN: Final = "t1"


class Said:
    """A speech output, the answer that it speaks, and the events that it emitted."""

    def __init__(self, tones: Tones) -> None:
        self.tones = tones
        self.events: list[LiveEvent] = []
        self.at_s: list[float] = []
        self.output = SpeechOutput(tones, "joe")
        self.answer = self.start()

    def start(self) -> SpokenAnswer:
        """Begins another answer."""
        self.answer = self.output.start(TURN, self._note)
        return self.answer

    def cancel(self) -> None:
        """Cancels the answer, and begins another."""
        self.answer.cancel()
        self.start()

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
        self.answer.then(GenerationComplete(TURN))
        self.answer.then(TurnComplete(TURN))

    async def say(self, *deltas: str) -> None:
        if self.events and isinstance(self.events[-1], TurnComplete):
            self.start()
        for delta in deltas:
            self.answer.say(delta)
        self.finish()
        await asyncio.sleep(60)
