"""A continuous model over scripted ones: as a session drives it, and as a live model for the contract suite."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

from antiphon.continuity.context import Carried
from antiphon.continuity.counters import ContinuityCounters
from antiphon.continuity.energy import MAX_LEVELS, EnergyChange, Ladder, Pool
from antiphon.continuity.events import ConnectFailed, Delayed, Noticed, Opened
from antiphon.continuity.model import ContinuousModel, FromModel
from antiphon.continuity.upstream import UpstreamHandle
from antiphon.models.base import ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    LiveContext,
    LiveEvent,
    LiveModel,
    LiveProfile,
    ModelFactory,
    OutputAudio,
    OutputText,
    ToolAnswer,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    UpstreamError,
)
from antiphon.tools.spec import Mode
from antiphon.transcript import Message, Transcript, UserMessage
from tests.fakes.calls import SOUND, LoopClock
from tests.fakes.scripted_live import PROFILE, Say, ScriptedLive


class Provider:
    """One model of a ladder. Each connection to it has the next of the scripts; after them, an empty one."""

    def __init__(self, *scripts: "Sequence[Any] | ScriptedLive | ModelError", profile: LiveProfile = PROFILE) -> None:
        self.made: list[ScriptedLive] = []
        """The connections, also those that were refused."""
        self.made_at_s: list[float] = []
        self._left = list(scripts)
        self.profile = profile
        self.factory = ModelFactory(profile, self._make)

    @property
    def last(self) -> ScriptedLive:
        return self.made[-1]

    def then(self, *scripts: "Sequence[Any] | ScriptedLive | ModelError") -> None:
        self._left += scripts

    def _make(self) -> LiveModel:
        script = self._left.pop(0) if self._left else []
        if isinstance(script, ModelError):
            model = ScriptedLive(refuses=script, profile=self.profile)
        elif isinstance(script, ScriptedLive):
            model = script
        else:
            model = ScriptedLive(script, profile=self.profile)
        self.made.append(model)
        self.made_at_s.append(asyncio.get_running_loop().time())
        return model


class Context:
    """The session as the source of contexts: it has this conversation."""

    def __init__(self, history: Sequence[Message] = ()) -> None:
        self.history = list(history)
        self.plans: list[tuple[str, bool, bool]] = []
        """The models that were planned for, whether as a fallback, and whether with the summary of the latest call."""
        self.notes: list[str] = []
        """The notes that contexts were made with."""
        self.error: Exception | None = None

    async def plan(self, profile: LiveProfile, *, is_fallback: bool, uses_call_summary: bool) -> Carried:
        self.plans.append((profile.name, is_fallback, uses_call_summary))
        return Carried("A summary." if is_fallback else "")

    def describe(self, profile: LiveProfile, mode: Mode, carried: Carried, note: str) -> LiveContext:
        if self.error is not None:
            raise self.error
        self.notes.append(note)
        return LiveContext(carried.summary, Transcript(), tuple(self.history), (), mode)


class Talk:
    """The session's side of a continuous model: what it was told, and when."""

    def __init__(
        self,
        *providers: Provider,
        mode: Mode = Mode.VOICE,
        history: Sequence[Message] = (),
        handle: UpstreamHandle | None = None,
        seed: int = 1,
    ) -> None:
        """One provider has all levels; several have one each, the best one first."""
        monotonic = LoopClock().monotonic
        if len(providers) == 1:
            ladder = Ladder.of_one(mode, providers[0].factory, monotonic)
        else:
            levels = range(MAX_LEVELS[mode], 0, -1)
            ladder = Ladder.of(mode, {n: each.factory for n, each in zip(levels, providers, strict=False)}, monotonic)
        self.pool = Pool(ladder)
        self.context = Context(history)
        self.counters = ContinuityCounters()
        self.posted: list[Any] = []
        self.at_s: list[float] = []
        self._has_news = asyncio.Event()
        self.model = ContinuousModel(
            pool=self.pool,
            source=self.context,
            post=self._take,
            counters=self.counters,
            handle=handle,
            random=Random(seed),
        )

    def _take(self, item: FromModel) -> None:
        self.posted.append(item.event)
        self.at_s.append(asyncio.get_running_loop().time())
        self._has_news.set()

    def of(self, kind: type[Any], turn: str | None = None) -> list[Any]:
        events = [event for event in self.posted if isinstance(event, kind)]
        return events if turn is None else [event for event in events if event.turn == turn]

    def text(self, turn: str) -> str:
        return "".join(event.text for event in self.of(OutputText, turn))

    def voiced(self, turn: str) -> str:
        """The words of the audio."""
        return "".join(event.text for event in self.of(OutputAudio, turn))

    def pcm(self, turn: str) -> bytes:
        return b"".join(event.pcm for event in self.of(OutputAudio, turn))

    @property
    def notices(self) -> list[str]:
        return [notice.code.value for notice in self.of(Noticed)]

    @property
    def energy(self) -> list[tuple[int, int]]:
        """The changes: from which level to which."""
        return [(change.previous, change.level) for change in self.of(EnergyChange)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Waits for something that the next events bring about."""
        while not is_true():
            self._has_news.clear()
            await self._has_news.wait()

    async def speak(self, seconds: float, pcm: bytes = SOUND) -> None:
        """Sends microphone audio in real time."""
        for _ in range(round(seconds * 50)):
            self.model.send_audio(pcm, playing=False)
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        self.model.close()
        await self.model.wait_closed()


RESUMING = replace(PROFILE, name="live", resumes=True)
LONG = "It is noon in Oslo, and the sun is shining. In Tokyo, it is already evening."
BEGUN = "It is noon in Oslo, "
HELLO = Say("Hello.", audio_ms=500)
LOST = UpstreamError("It is away.", CloseKind.TRANSIENT)
HISTORY = (UserMessage("I am Ann"),)


@asynccontextmanager
async def talking(*providers: Provider, **options: Any) -> AsyncIterator[Talk]:
    """A continuous model that is connected, if the first script lets it."""
    talk = Talk(*providers, **options)
    await asyncio.sleep(0.01)
    yield talk
    await talk.close()


async def ask(talk: Talk, turn: str = "t1", text: str = "hi", seconds: float = 10) -> None:
    talk.model.respond(turn, text)
    await asyncio.sleep(seconds)


def ends(talk: Talk, turn: str) -> tuple[int, int]:
    """How often the turn was completed, and how often it failed."""
    return len(talk.of(TurnComplete, turn)), len(talk.of(TurnFailed, turn))


class ContinuousLive:
    """A continuous model as a `LiveModel`: it is open from `connect` to `close`."""

    def __init__(self, provider: Provider) -> None:
        self.profile = provider.profile
        self._provider = provider
        self._model: ContinuousModel | None = None
        self._voice: tuple[str | None, float] = (None, 1.0)
        self._turn: str | None = None
        """The turn under way."""
        self._events: asyncio.Queue[LiveEvent | None] = asyncio.Queue()
        self._is_closed = False

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        if self._is_closed:
            raise ModelError("The model is closed.")
        self._opening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._given = context
        level = MAX_LEVELS[context.mode]
        self._model = ContinuousModel(
            pool=Pool(Ladder.of_one(context.mode, self._provider.factory, LoopClock().monotonic)),
            source=self,
            post=self._take,
            counters=ContinuityCounters(),
            random=Random(1),
            handle=None if resume is None else UpstreamHandle(resume, level, self.profile.name),
            voice=self._voice,
        )
        await self._opening

    async def plan(self, profile: LiveProfile, *, is_fallback: bool, uses_call_summary: bool) -> Carried:
        return Carried()

    def describe(self, profile: LiveProfile, mode: Mode, carried: Carried, note: str) -> LiveContext:
        transcript = self._given.transcript
        assert isinstance(transcript, Transcript)
        return replace(self._given, history=transcript.before(self._turn), system=f"{self._given.system}\n\n{note}")

    async def events(self) -> AsyncIterator[LiveEvent]:
        while (event := await self._events.get()) is not None:
            yield event
        self._events.put_nowait(None)

    def set_voice(self, voice: str | None, speed: float) -> None:
        self._voice = (voice, speed)
        if self._model is not None:
            self._model.set_voice(voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if not self.profile.hears:
            raise ModelError("The model cannot hear.", retryable=False)
        if self._model is not None:
            self._model.send_audio(pcm, playing=playing)

    def end_audio(self, turn: str) -> None:
        if self._model is not None:
            self._turn = turn
            self._model.end_audio(turn)

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._turn = turn
        self._open_model.respond(turn, text, ran)

    def say(self, turn: str, text: str) -> None:
        self._turn = turn
        self._open_model.say(turn, text)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        if self._model is not None:
            self._model.send_tool_results(turn, answers)

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        if self._model is not None:
            self._model.interrupt(turn, heard)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._events.put_nowait(None)
        if self._model is not None:
            self._model.close()
            await self._model.wait_closed()

    @property
    def _open_model(self) -> ContinuousModel:
        if self._model is None or self._is_closed:
            raise ModelError("The model is not connected.", retryable=False)
        return self._model

    def _take(self, item: FromModel) -> None:
        event = item.event
        match event:
            case Opened():
                if not self._opening.done():
                    self._opening.set_result(None)
            case ConnectFailed(error=error):
                self._opening.set_exception(error)
            case EnergyChange() | Noticed() | Delayed():
                pass
            case _:
                if isinstance(event, TurnStarted):
                    self._turn = event.turn
                elif isinstance(event, TurnComplete) and event.turn == self._turn:
                    self._turn = None
                self._events.put_nowait(event)
                if isinstance(event, Closed):
                    self._events.put_nowait(None)
