"""Speech beside the conversation: a sample of a voice, and speech that a client has missed and whose audio is gone."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from antiphon.errors import AntiphonError
from antiphon.models.live import OutputAudio
from antiphon.session.events import Event, SpeechLost
from antiphon.session.models import SessionModels
from antiphon.session.outbox import HeardSpeech, Outbox, SpokenPiece, Unheard, rest_of
from antiphon.session.resume_state import Preferences
from antiphon.session.state import SessionState
from antiphon.speech.clauses import Clauses
from antiphon.telemetry.log import get_logger

SAMPLE: Final = "Hello, this is how I sound."
ONE_MOMENT: Final = "One moment."

Synthesize = Callable[[str, str | None, float], Awaitable[bytes]]
"""Speaks a text in a voice, None for the usual one, at a speed: PCM16 at the wire's rate. Raises an `AntiphonError`
with a text that can be shown."""

log: Final = get_logger(__name__)


class Sampler:
    """Makes one sample at a time: of those that were asked for meanwhile, only the last is wanted."""

    def __init__(self, synthesize: Synthesize, outbox: Outbox, refuse: Callable[[str], None]) -> None:
        self._synthesize = synthesize
        self._outbox = outbox
        self._refuse = refuse
        self._task: asyncio.Task[None] | None = None

    def start(self, voice: str | None, speed: float) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(self._run(voice, speed))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, voice: str | None, speed: float) -> None:
        try:
            pcm = await self._synthesize(SAMPLE, voice, speed)
        except AntiphonError as error:
            self._refuse(str(error))
        else:
            self._outbox.send_audio(0, 0, pcm, last=True, once=True)


class Filler:
    """Says a short line while the user waits for another model."""

    def __init__(
        self,
        synthesize: Synthesize | None,
        preferences: Callable[[], Preferences],
        post: Callable[[Event], None],
    ) -> None:
        """Without `synthesize`, nothing is said."""
        self._synthesize = synthesize
        self._preferences = preferences
        self._post = post
        self._task: asyncio.Task[None] | None = None

    def start(self, turn: str) -> None:
        if self._synthesize is not None:
            self._task = asyncio.create_task(self._run(self._synthesize, turn))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, synthesize: Synthesize, turn: str) -> None:
        preferences = self._preferences()
        try:
            pcm = await synthesize(ONE_MOMENT, preferences.voice, preferences.speed)
        except AntiphonError as error:
            log.warning("filler_not_spoken", reason=str(error))
        else:
            if pcm:
                self._post(OutputAudio(turn, pcm, is_filler=True))


class Repeater:
    """Has what is `unspoken` in the outbox spoken, in its order. What is said meanwhile waits there behind it.

    The speech engine of the server does it, or the model, if that has a voice of its own.
    """

    def __init__(
        self,
        *,
        synthesize: Synthesize | None,
        outbox: Outbox,
        preferences: Callable[[], Preferences],
        models: SessionModels,
        state: Callable[[], SessionState],
        step: Callable[[Event], Awaitable[None]],
        on_sent: Callable[[], None],
    ) -> None:
        """`synthesize` is None where the server has no speech engine. `on_sent` is called after each piece."""
        self._synthesize = synthesize
        self._outbox = outbox
        self._preferences = preferences
        self._models = models
        self._state = state
        self._step = step
        self._on_sent = on_sent
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.stop()
        if self._has_own_voice:
            await self.ask_model()
        elif self._outbox.unspoken:
            self._outbox.unspoken = deque(_in_clauses(self._outbox.unspoken))
            self._task = asyncio.create_task(self._run())

    async def ask_model(self) -> None:
        """Has the model say what is `unspoken`, if only it can, once its answer is complete: it says one thing at a
        time."""
        turn = self._state().turn
        if self._has_own_voice and self._outbox.unspoken and turn is not None and turn.complete:
            text, ms = self._outbox.take_unspoken(turn.number)
            if not text:
                # The model did not say which words its audio had.
                heard = HeardSpeech(0, turn.number, ms=turn.audio_ms - ms, missing_ms=ms)
                text = " ".join(rest_of(turn.text, heard))
            await self._step(SpeechLost(text, ms))

    @property
    def _has_own_voice(self) -> bool:
        """Whether only the model has the voice that the client has heard."""
        profile = self._models.profile_of(self._state().mode)
        return self._synthesize is None or (profile is not None and bool(profile.voices))

    def stop(self) -> None:
        """What was not sent stays `unspoken`."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        unspoken = self._outbox.unspoken
        while unspoken and unspoken is self._outbox.unspoken:
            first = unspoken[0]
            pcm = first.pcm if first.pcm is not None else await self._speak(first.piece.text)
            unspoken.popleft()
            if pcm:
                self._outbox.send_again(first.piece, pcm)
                self._on_sent()

    async def _speak(self, text: str) -> bytes:
        preferences = self._preferences()
        assert self._synthesize is not None
        try:
            return await self._synthesize(text, preferences.voice, preferences.speed)
        except AntiphonError as error:
            log.warning("speech_not_repeated", reason=str(error))
            return b""


def _in_clauses(unspoken: Iterable[Unheard]) -> Iterator[Unheard]:
    """Neighbouring pieces without a sound, as the clauses that they are parts of: alone they would sound cut off."""
    for (is_silent, _), group in groupby(unspoken, key=lambda each: (each.pcm is None, each.piece.turn)):
        pieces = list(group)
        if not is_silent:
            yield from pieces
            continue
        clauses = Clauses()
        texts = [*clauses.push("".join(each.piece.text for each in pieces)), *clauses.finish()]
        first, last = pieces[0].piece, pieces[-1].piece
        ms, characters = sum(each.piece.ms for each in pieces), sum(map(len, texts))
        for place, text in enumerate(texts):
            is_last = last.last and place == len(texts) - 1
            share_ms = ms * len(text) // characters
            yield Unheard(SpokenPiece(0, first.turn, first.seq + place, f"{text} ", share_ms, is_last), None)
