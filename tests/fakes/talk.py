"""A speaker who talks to a `TurnRecognizer`, and a listener that records its events."""

import asyncio
from typing import Final

from antiphon.models.cascade.turn import Turn
from antiphon.models.cascade.turn_recognizer import TurnRecognizer
from antiphon.models.live import Timings
from tests.fakes.voice import HZ, PUSH_MS, FakeEngines

TOLERANCE_S: Final = 0.045
"""The duration of a frame, a push and a batch."""


class RecordingListener:
    """A listener that records the events of a `TurnRecognizer`."""

    def __init__(self) -> None:
        self.answering = False
        self.asking = False
        self.events: list[str] = []
        self.at_s: list[float] = []
        self.captions: list[str] = []
        self.guesses: list[str] = []
        """The guesses made at pauses."""
        self.spoken: list[str] = []
        """The ids of all turns in which speech was heard, and of noises."""
        self.turns: list[str] = []
        self.ids: list[str] = []
        """The ids of the turns."""
        self.continues: list[str | None] = []
        self.timings: list[Timings] = []
        self.empty: list[str] = []
        self.failures: list[str] = []
        self.failed: list[str | None] = []
        """The turns of the failures."""

    def _note(self, event: str) -> None:
        self.events.append(event)
        self.at_s.append(asyncio.get_running_loop().time())

    def is_answering(self) -> bool:
        return self.answering

    def on_possible_speech(self, *, possible: bool) -> None:
        self._note("possible" if possible else "not possible")

    def on_hold(self) -> None:
        self._note("hold")

    def on_release(self) -> None:
        self._note("release")

    def is_asking(self) -> bool:
        return self.asking

    def on_speech(self, turn: Turn) -> None:
        self.spoken.append(turn.id)

    def on_barge_in(self) -> None:
        self._note("barge-in")

    def on_continued(self, turn: Turn) -> None:
        self._note("continued")

    def on_caption(self, turn: Turn) -> None:
        self.captions.append(turn.caption)

    def on_guess(self, turn: Turn, text: str) -> None:
        self._note("guess")
        self.guesses.append(text)

    def on_resumed(self) -> None:
        self._note("resumed")

    def on_final(self, turn: Turn, timings: Timings) -> None:
        self._note("turn")
        self.turns.append(turn.text)
        self.ids.append(turn.id)
        self.continues.append(turn.continues)
        self.timings.append(timings)

    def on_empty(self, turn: str) -> None:
        self._note("empty")
        self.empty.append(turn)

    def on_failure(self, turn: str | None, message: str) -> None:
        self._note("failure")
        self.failures.append(message)
        self.failed.append(turn)

    def when(self, event: str) -> float:
        return self.at_s[self.events.index(event)]


class Talk:
    def __init__(self) -> None:
        self.fakes = FakeEngines()
        self.fakes.recognizer.tells_interim = False
        self.listener = RecordingListener()
        self.recognizer = TurnRecognizer(self.fakes.engines, self.listener)
        self.playing = False

    async def sound(self, pcm: bytes) -> float:
        size = 2 * HZ * PUSH_MS // 1_000
        for at in range(0, len(pcm), size):
            self.recognizer.push(pcm[at : at + size], playing=self.playing)
            await asyncio.sleep(PUSH_MS / 1_000)
        return asyncio.get_running_loop().time()

    async def speak(self, text: str) -> float:
        """Returns the time at which the speech ended."""
        return await self.sound(self.fakes.words.say(text))

    async def be_silent(self, ms: int) -> float:
        return await self.sound(bytes(2 * HZ * ms // 1_000))

    async def say(self, text: str, silence_ms: int = 1_500) -> float:
        """Speaks with silence before and after, and returns the time at which the speech ended."""
        await self.be_silent(500)
        said_s = await self.speak(text)
        await self.be_silent(silence_ms)
        return said_s
