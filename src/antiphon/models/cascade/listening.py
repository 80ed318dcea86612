"""One session's ears: from microphone audio to what was said, with guesses on the way that save the waiting."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from antiphon.audio.barge import BargeIn
from antiphon.audio.turn import TurnDetector
from antiphon.models.cascade.ear import Ear, Sign
from antiphon.models.cascade.hearing import Hearing
from antiphon.models.live import Timings
from antiphon.speech.base import Recognizer, SpeechBusy, SpeechError, Urgency
from antiphon.speech.workers import Workers

COMPLETE: Final = 0.5
"""What the turn detector must say."""
INTERIM_EVERY_MS: Final = 640
SETTLED_MS: Final = 6_000
"""Of a turn that is longer than this, what was said before a pause is not recognised again after it."""
MAX_TURN_MS: Final = 20_000
"""Of audio that is kept for one turn. Of somebody who speaks on without a pause, the older part is recognised then."""
CUT_WITHIN_BYTES: Final = 2 * 2 * 16_000
STALLED_S: Final = 1.0
"""A microphone that falls silent without a word, in the middle of a turn, was switched off."""


Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Senses:
    """What the ears of all sessions share."""

    hearing: Hearing
    recognizer: Recognizer
    detector: TurnDetector
    workers: Workers
    is_request: Callable[[str], bool]
    """Whether a text is a whole request, as far as a grammar can tell."""
    short_silence_ms: int
    long_silence_ms: int


class Hearer(Protocol):
    """Who is told what the ears hear."""

    def is_audible(self) -> bool:
        """Whether an answer is being played."""
        ...

    def on_speech(self, *, goes_on: bool) -> None:
        """Somebody begins to speak, or goes on with a turn that seemed to be over."""
        ...

    def on_guess(self, text: str, *, is_pausing: bool) -> None:
        """What was said so far, with more to come perhaps."""
        ...

    def on_more(self) -> None:
        """The pause is over: a guess was not all."""
        ...

    def on_turn(self, text: str, timings: Timings, *, goes_on: bool) -> None: ...

    def on_nothing(self) -> None:
        """A turn without words."""
        ...

    def on_failure(self, message: str) -> None: ...


class Listening:
    def __init__(self, senses: Senses, hearer: Hearer) -> None:
        self._senses = senses
        self._hearer = hearer
        self._ear = Ear(senses.short_silence_ms, senses.long_silence_ms)
        self._barge = BargeIn()
        self._stream = senses.hearing.open(self._hear)
        self._client_plays = False
        self._known: list[str] = []
        """The text of the older part of a long turn, whose audio is gone."""
        self._goes_on = False
        self._stt_ms = 0.0
        self._recognizing: asyncio.Task[str] | None = None
        """The text of the turn as it was at the last pause."""
        self._recognized_bytes = 0
        self._of_pause: set[asyncio.Task[Any]] = set()
        """What goes on because of a pause, and is given up if it was only that."""
        self._aside: set[asyncio.Task[Any]] = set()
        """What goes on while somebody speaks."""
        self._interim_at_ms = 0
        self._stalled: asyncio.TimerHandle | None = None

    def push(self, pcm: bytes, *, playing: bool) -> None:
        self._client_plays = playing
        self._stream.push(pcm)
        self._wait_for_more()

    async def end(self) -> None:
        """No more audio comes for now. `on_turn`, `on_nothing` or `on_failure` follows."""
        await self._stream.flush()
        if self._ear.is_open:
            self._take(self._ear.end())
        else:
            self._hearer.on_nothing()

    def expect_answer(self) -> None:
        """What is played from now on is another answer."""
        self._barge.reset()

    def played(self, pcm: bytes, hz: int) -> None:
        """A piece of the answer, which the microphone may hear too."""
        self._barge.played(pcm, hz)

    def settle(self) -> None:
        """The answer has begun: what is said from now on is another turn."""
        if not self._ear.is_open:
            self._ear.settle()

    async def close(self) -> None:
        self._stream.close()
        if self._stalled is not None:
            self._stalled.cancel()
        tasks = self._of_pause | self._aside
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # What is heard.

    def _hear(self, probability: float, frame: bytes) -> None:
        is_audible = self._hearer.is_audible() or self._client_plays
        guarded = is_audible and not self._ear.is_open
        sign = self._ear.hear(probability, frame, may_start=not guarded)
        if guarded and self._barge.hear(probability, np.frombuffer(frame, np.int16), playing=self._client_plays):
            sign = self._ear.start()
        self._take(sign)
        if self._ear.is_speaking:
            self._recognize_aside()

    def _take(self, sign: Sign | None) -> None:
        match sign:
            case Sign.STARTED:
                self._known.clear()
                self._goes_on, self._stt_ms, self._interim_at_ms = False, 0.0, INTERIM_EVERY_MS
                self._hearer.on_speech(goes_on=False)
            case Sign.PAUSED:
                self._pause()
            case Sign.RESUMED:
                self._go_on()
            case Sign.REOPENED:
                self._goes_on = True
                self._hearer.on_speech(goes_on=True)
                self._go_on()
            case Sign.ENDED:
                self._start(self._of_pause, self._finish(self._ear.silence_ms))
            case Sign.DISCARDED:
                self._hearer.on_nothing()

    def _pause(self) -> None:
        """The turn may be over. What was said is recognised now, and whether it was all is judged."""
        for task in self._aside:
            task.cancel()
        audio = self._ear.turn
        self._recognized_bytes = len(audio)
        self._recognizing = self._start(self._of_pause, self._recognize(audio, Urgency.SOON))
        self._start(self._of_pause, self._judge(audio, self._recognizing))

    def _go_on(self) -> None:
        """It was only a pause."""
        if self._ear.turn_ms > SETTLED_MS and (text := _result(self._recognizing)):
            self._known.append(text)
            self._ear.forget(self._recognized_bytes)
            self._interim_at_ms = 0
        for task in self._of_pause:
            task.cancel()
        self._recognizing = None
        self._hearer.on_more()

    def _wait_for_more(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if self._ear.is_open:
            self._stalled = asyncio.get_running_loop().call_later(STALLED_S, lambda: self._take(self._ear.end()))

    # What was said.

    async def _recognize(self, audio: bytes, urgency: Urgency) -> str:
        began_s = asyncio.get_running_loop().time()
        text = await self._senses.recognizer.recognize(audio, urgency)
        self._stt_ms += (asyncio.get_running_loop().time() - began_s) * 1_000
        return text

    async def _judge(self, audio: bytes, recognizing: "asyncio.Task[str]") -> None:
        """Two witnesses: the grammar by the words, the turn detector by the melody.

        They are asked at once where a thread is free. Else a whole request saves the other the work.
        """
        voting = self._start(self._of_pause, self._vote(audio)) if self._senses.workers.is_idle else None
        with suppress(SpeechError):
            text = self._join(await recognizing)
            if text:
                self._hearer.on_guess(text, is_pausing=True)
            if text and self._senses.is_request(text):
                self._take(self._ear.believe_complete())
            elif text and voting is None:
                await self._vote(audio)

    async def _vote(self, audio: bytes) -> None:
        detector = self._senses.detector
        with suppress(SpeechBusy):
            if await self._senses.workers.run(lambda _: detector.completeness(audio), Urgency.SOON) >= COMPLETE:
                self._take(self._ear.believe_complete())

    async def _finish(self, silence_ms: int) -> None:
        """The turn is over. Its text is usually there already."""
        ended_s = asyncio.get_running_loop().time()
        if self._recognizing is None:
            self._pause()
        assert self._recognizing is not None
        try:
            text = self._join(await self._recognizing)
        except SpeechError as error:
            self.settle()
            self._hearer.on_failure(str(error))
            return
        if text:
            wait_ms = (asyncio.get_running_loop().time() - ended_s) * 1_000
            self._hearer.on_turn(text, Timings(silence_ms, self._stt_ms, wait_ms), goes_on=self._goes_on)
        else:
            self.settle()
            self._hearer.on_nothing()

    def _recognize_aside(self) -> None:
        """Now and then while somebody speaks, if a thread is free: the text as it grows, for the eye.

        Of a turn without an end it is the text to keep, and the audio goes.
        """
        is_full = self._ear.turn_ms >= MAX_TURN_MS
        if self._aside or (self._ear.turn_ms < self._interim_at_ms and not is_full):
            return
        self._interim_at_ms = self._ear.turn_ms + INTERIM_EVERY_MS
        self._start(self._aside, self._let_go() if is_full else self._tell_interim(self._ear.turn))

    async def _tell_interim(self, audio: bytes) -> None:
        with suppress(SpeechError):
            if text := await self._senses.recognizer.recognize(audio, Urgency.IDLE):
                self._hearer.on_guess(self._join(text), is_pausing=False)

    async def _let_go(self) -> None:
        audio = self._ear.turn
        audio = audio[: quietest(audio, len(audio) - CUT_WITHIN_BYTES)]
        with suppress(SpeechError):
            self._known.append(await self._recognize(audio, Urgency.NOW))
            self._ear.forget(len(audio))
            self._interim_at_ms = 0

    def _join(self, text: str) -> str:
        return " ".join([*self._known, text]).strip()

    @staticmethod
    def _start(tasks: set[asyncio.Task[Any]], work: Coroutine[Any, Any, Done]) -> "asyncio.Task[Done]":
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task


def _result(task: "asyncio.Task[str] | None") -> str:
    if task is None or not task.done() or task.cancelled() or task.exception() is not None:
        return ""
    return task.result()


def quietest(pcm: bytes, start: int) -> int:
    """Where, from that byte on, it is best cut: in the middle of its quietest twentieth of a second."""
    window = 800
    samples = np.abs(np.frombuffer(pcm, np.int16)[start // 2 :].astype(np.int32))
    usable = samples[: len(samples) - len(samples) % window].reshape(-1, window)
    return start + 2 * (window * int(usable.sum(axis=1).argmin()) + window // 2)
