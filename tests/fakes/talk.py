"""Somebody who speaks to one session's ears, and one who is told what they hear."""

import asyncio
from typing import Final

from antiphon.models.cascade.listening import Listening
from antiphon.models.live import Timings
from tests.fakes.voice import HZ, PUSH_MS, Body

TOLERANCE_S: Final = 0.045
"""A frame, a push and a batch."""


class Told:
    """One who is told what is heard."""

    def __init__(self) -> None:
        self.answering = False
        self.what: list[str] = []
        self.at_s: list[float] = []
        self.words: list[str] = []
        """So far."""
        self.guesses: list[str] = []
        """At pauses."""
        self.turns: list[str] = []
        self.goes_on: list[bool] = []
        self.timings: list[Timings] = []
        self.failures: list[str] = []

    def _note(self, what: str) -> None:
        self.what.append(what)
        self.at_s.append(asyncio.get_running_loop().time())

    def is_answering(self) -> bool:
        return self.answering

    def on_doubt(self, *, is_open: bool) -> None:
        self._note("doubt" if is_open else "no doubt")

    def on_speech(self, *, goes_on: bool) -> None:
        self._note("goes on" if goes_on else "speech")

    def on_words(self, text: str) -> None:
        self.words.append(text)

    def on_guess(self, text: str) -> None:
        self._note("guess")
        self.guesses.append(text)

    def on_more(self) -> None:
        self._note("more")

    def on_turn(self, text: str, timings: Timings, *, goes_on: bool) -> None:
        self._note("turn")
        self.turns.append(text)
        self.goes_on.append(goes_on)
        self.timings.append(timings)

    def on_nothing(self) -> None:
        self._note("nothing")

    def on_failure(self, message: str) -> None:
        self._note("failure")
        self.failures.append(message)

    def when(self, what: str) -> float:
        return self.at_s[self.what.index(what)]


class Talk:
    def __init__(self) -> None:
        self.body = Body()
        self.body.recognizer.tells_interim = False
        self.told = Told()
        self.listening = Listening(self.body.senses, self.told)
        self.playing = False

    async def sound(self, pcm: bytes) -> float:
        size = 2 * HZ * PUSH_MS // 1_000
        for at in range(0, len(pcm), size):
            self.listening.push(pcm[at : at + size], playing=self.playing)
            await asyncio.sleep(PUSH_MS / 1_000)
        return asyncio.get_running_loop().time()

    async def speak(self, text: str) -> float:
        """Gives the time at which it was said."""
        return await self.sound(self.body.words.say(text))

    async def be_silent(self, ms: int) -> float:
        return await self.sound(bytes(2 * HZ * ms // 1_000))

    async def say(self, text: str, silence_ms: int = 1_500) -> float:
        """With silence around it; gives the time at which it was said."""
        await self.be_silent(500)
        said_s = await self.speak(text)
        await self.be_silent(silence_ms)
        return said_s
