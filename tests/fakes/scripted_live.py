"""A live model that hears, says and does what its script says, at the times that the script gives."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final, Literal
from uuid import uuid4

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.live import (
    Closed,
    CloseKind,
    GenerationComplete,
    GoAway,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    LiveProfile,
    OutputAudio,
    OutputText,
    ResumptionUpdate,
    Timings,
    ToolAnswer,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    Usage,
    messages_of,
)
from antiphon.tools.call import ToolCall, number
from antiphon.transcript import Entry, Message, Transcript
from tests.fakes.spoken_answer import OUTPUT_HZ, timeline

INPUT_HZ: Final = 16_000

PROFILE: Final = LiveProfile(
    name="scripted",
    hears=True,
    output_hz=OUTPUT_HZ,
    needs_network=False,
    tool_schemas="openai_realtime",
    keeps_context=True,
)
"""The native flavour: it answers by itself, and keeps its own context."""
WAITING: Final = replace(PROFILE, keeps_context=False, waits_to_answer=True)
"""The flavour of the cascade: it tells what it heard, is asked for the answer, and reads the session's transcript."""


@dataclass(frozen=True, slots=True)
class Hear:
    """The user's turn is over when this much audio has come after the last answer. The audio is not listened to."""

    text: str
    after_ms: int = 800
    timings: Timings | None = None
    continues: bool = False
    """Whether it replaces the turn that was heard before it."""
    transcript: Literal["before", "late", "after", "never"] = "before"
    """When the final transcript comes: before the answer, after the answer's first piece (text, audio or calls), after
    `TurnComplete`, or never."""
    late_ms: int = 0
    """How much later than that it comes."""
    over: bool = False
    """Whether audio counts during the answer before it. That answer goes on: two are then in flight."""


@dataclass(frozen=True, slots=True)
class Mishear:
    """As much audio as this cannot be understood."""

    message: str = "I could not understand that."
    after_ms: int = 800


@dataclass(frozen=True, slots=True)
class Say:
    """An answer, clause by clause. The times count from the beginning of the turn, or from the results before it."""

    text: str
    """`{results}` stands for the words of all results that the model was given."""
    first_text_ms: int = 100
    first_audio_ms: int = 200
    audio_ms: int = 1_500
    goes_on: bool = False
    """Whether the turn has more steps: calls, usually."""


@dataclass(frozen=True, slots=True)
class Call:
    """Calls that stand side by side in the script belong to one message."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """The calls before it are cancelled if they have no results after this time. The next step follows."""

    after_ms: int
    ids: tuple[str, ...] | None = None
    """Which of them; None for all. The results of the others are waited for."""


@dataclass(frozen=True, slots=True)
class Use:
    """What the turn costs up to here."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing comes until the user interrupts or says something else."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing comes for this long."""

    ms: int


@dataclass(frozen=True, slots=True)
class Fail:
    message: str
    retryable: bool = True
    rate_limited: bool = False
    retry_after_s: float | None = None
    kind: FailureKind | None = None


@dataclass(frozen=True, slots=True)
class Barge:
    """The user speaks over the answer before it, this long after its first audio. All answers in flight are void."""

    after_ms: int


@dataclass(frozen=True, slots=True)
class GoOn:
    """The user goes on speaking, this long after what seemed to be the end of the turn. Nothing of an answer comes."""

    after_ms: int


@dataclass(frozen=True, slots=True)
class Resumable:
    """A newer resumption handle is told as soon as the script comes to it."""

    handle: str | None


@dataclass(frozen=True, slots=True)
class GoAwayIn:
    """Told as soon as the script comes to it. The connection really ends when the time is over."""

    time_left_ms: int


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection ends as soon as the script comes to it."""

    reason: str = "the connection was lost"
    kind: CloseKind = CloseKind.TRANSIENT
    retry_after_s: float | None = None


Step = Hear | Mishear | Say | Call | Cancel | Use | Pause | Stall | Fail | Barge | GoOn | Resumable | GoAwayIn | HangUp
Unasked = Resumable | GoAwayIn | HangUp
"""Steps that need no turn."""


class _Answer:
    """An answer in the making."""

    def __init__(self, turn: str, steps: list[Step], heard: Hear | None) -> None:
        self.turn = turn
        self.steps = steps
        self.heard = heard
        """Set while its transcript is still to come."""
        self.said = ""
        self.calls: tuple[ToolCall, ...] = ()
        """The calls whose results are awaited."""
        self.has_results = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class ScriptedLive:
    """A turn of the user plays the script up to the end of the next answer. After the script, answers are empty.

    A typed turn takes the place of a `Hear`. What is left of an answer that becomes void is skipped.
    """

    def __init__(
        self,
        script: Sequence[Step] = (),
        *,
        profile: LiveProfile = PROFILE,
        refuses: ModelError | None = None,
        connect_s: float = 0.0,
        latency_ms: int = 0,
        make_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        """`connect` takes `connect_s`, which may be infinite, and then raises `refuses` if there is one. Events arrive
        `latency_ms` after they happened, so that some of a turn still come after it was interrupted."""
        self.profile = profile
        self.context: LiveContext | None = None
        self.resumed_with: str | None = None
        self.prompts: list[Sequence[Message]] = []
        """What it knew of the conversation each time that it began or went on to answer."""
        self.audio_bytes = 0
        self.playing_bytes = 0
        """How much of the audio came while the client was playing."""
        self.texts: list[str] = []
        """What it was asked to respond to."""
        self.said: list[str] = []
        """What it was told to say."""
        self.results: list[ToolAnswer] = []
        """All that came, including those that nobody waited for."""
        self.interrupts: list[str] = []
        """The turns that were interrupted."""
        self.heard: list[str | None] = []
        """What the user heard of each of them."""
        self.voice: tuple[str | None, float] | None = None
        self.closed = False
        self._script = deque(script)
        self._refuses = refuses
        self._connect_s = connect_s
        self._latency_s = latency_ms / 1000
        self._make_id = make_id
        self._own = Transcript()
        """The context that the native flavour keeps."""
        self._outbox: deque[tuple[float, LiveEvent]] = deque()
        """Events, and when they arrive."""
        self._has_events = asyncio.Event()
        self._answers: dict[str, _Answer] = {}
        """Those in the making, by turn."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._unheard_ms = 0.0
        """Audio that belongs to the next turn."""
        self._next_turn = make_id()
        """The id of the turn that is being heard."""
        self._heard_turns: list[str] = []
        self._barges: dict[str, asyncio.TimerHandle] = {}
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def audio_ms(self) -> float:
        """How much audio it was sent."""
        return _input_ms(self.audio_bytes)

    @property
    def messages(self) -> list[Message]:
        """The conversation as it knows it."""
        if self.context is None or self.profile.keeps_context:
            return list(self._own.messages)
        return list(self.context.transcript.messages)

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        await (asyncio.Event().wait() if self._connect_s == inf else asyncio.sleep(self._connect_s))
        if self._refuses is not None:
            raise self._refuses
        if self.closed:
            raise ModelError("The scripted model is closed.")
        self.context, self.resumed_with = context, resume
        self._own = Transcript(Entry("", message) for message in context.history)
        self._play_unasked()

    async def events(self) -> AsyncIterator[LiveEvent]:
        loop = asyncio.get_running_loop()
        while self._outbox or not self.closed:
            if not self._outbox:
                self._has_events.clear()
                await self._has_events.wait()
            elif (delay_s := self._outbox[0][0] - loop.time()) > 0:
                await asyncio.sleep(delay_s)
            else:
                yield self._outbox.popleft()[1]

    def set_voice(self, voice: str | None, speed: float) -> None:
        self.voice = (voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        if not self.profile.hears:
            raise ModelError("The scripted model cannot hear.", retryable=False)
        if not self._is_open:
            return
        self.audio_bytes += len(pcm)
        self.playing_bytes += len(pcm) * playing
        step = self._expected
        if step is None or (self._answers and not (isinstance(step, Hear) and step.over)):
            return
        before_ms, self._unheard_ms = self._unheard_ms, self._unheard_ms + _input_ms(len(pcm))
        if self._unheard_ms >= step.after_ms:
            self._hear(step)
        elif isinstance(step, Hear) and before_ms < step.after_ms / 2 <= self._unheard_ms:
            words = step.text.split()
            half = " ".join(words[: (len(words) + 1) // 2])
            self._emit(InputTranscript(self._next_turn, half, is_final=False))

    def end_audio(self, turn: str) -> None:
        if not self._is_open:
            return
        step = self._expected
        if step is not None and self._unheard_ms:
            self._hear(step, turn)
        else:
            self._emit(TurnComplete(turn))

    def respond(self, turn: str, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._require_connection()
        self.texts.append(text)
        self.results += ran
        self._void_all()
        if turn not in self._heard_turns and isinstance(self._expected, Hear):
            self._script.popleft()
        if text:
            self._own.set_user(turn, text)
        self._note(turn, ran)
        self._begin(turn)

    def say(self, turn: str, text: str) -> None:
        """These words are an answer that comes before what the script has next."""
        self._require_connection()
        self.said.append(text)
        self._void_all()
        self._script.appendleft(Say(text))
        self._begin(turn)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        if not self._is_open:
            return
        new = [answer for answer in answers if answer not in self.results or self._waits_for(turn, answer.call)]
        self.results += answers
        self._note(turn, new)
        answer = self._answers.get(turn)
        if answer is not None and answer.calls:
            done = [result.call for result in new]
            answer.calls = tuple(call for call in answer.calls if call not in done)
            if not answer.calls:
                answer.has_results.set()

    def interrupt(self, turn: str, heard: str | None = None) -> None:
        if not self._is_open:
            return
        self.interrupts.append(turn)
        self.heard.append(heard)
        self._forestall_barge(turn)
        if turn in self._answers:
            self._end_answer(self._answers[turn])
        if heard is not None and self._own.answer_entry(turn) is not None:
            self._own.set_answer(turn, heard)

    async def close(self) -> None:
        self._end()
        self._outbox.clear()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def _is_open(self) -> bool:
        return self.context is not None and not self.closed

    @property
    def _expected(self) -> Hear | Mishear | None:
        """What audio brings about next, if anything."""
        return step if self._script and isinstance(step := self._script[0], Hear | Mishear) else None

    def _require_connection(self) -> None:
        if not self._is_open:
            raise ModelError("The scripted model is not connected.", retryable=False)

    def _waits_for(self, turn: str, call: ToolCall) -> bool:
        return turn in self._answers and call in self._answers[turn].calls

    def _note(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        """Adds calls and their results to the context, if there are any."""
        if answers:
            for message in messages_of("", answers, key=f"{turn}_{len(self._own.entries)}"):
                self._own.add(Entry(turn, message))

    # What the user says.

    def _hear(self, step: Hear | Mishear, turn: str | None = None) -> None:
        """`turn` is the session's id, if it has ended the audio."""
        self._script.popleft()
        self._unheard_ms = 0
        own, self._next_turn = self._next_turn, self._make_id()
        if isinstance(step, Mishear):
            self._emit(TurnFailed(turn, step.message))
            if turn is not None:
                self._emit(TurnComplete(turn))
            return
        continued = self._heard_turns[-1] if step.continues else None
        turn = turn or own
        self._emit(TurnStarted(turn, continued))
        self._heard_turns.append(turn)
        if continued is not None:
            self._own.continue_as(continued, turn)
        if self.profile.waits_to_answer:
            self._tell(turn, step)
            return
        self._own.set_user(turn, step.text)
        if step.transcript == "before":
            self._tell(turn, step)
        self._begin(turn, step if step.transcript in ("late", "after") else None)

    def _tell(self, turn: str, step: Hear) -> None:
        final = InputTranscript(turn, step.text, is_final=True, timings=step.timings)
        if step.late_ms:
            self._later(step.late_ms, self._emit, final)
        else:
            self._emit(final)

    def _tell_heard(self, answer: _Answer, when: str) -> None:
        if answer.heard is not None and answer.heard.transcript == when:
            heard, answer.heard = answer.heard, None
            self._tell(answer.turn, heard)

    # What it answers.

    def _begin(self, turn: str, heard: Hear | None = None) -> None:
        if self.closed:
            return
        self._unheard_ms = 0
        self.prompts.append(self.messages)
        self._answers[turn] = answer = _Answer(turn, self._take_turn(), heard)
        answer.task = asyncio.create_task(self._play(answer))
        self._tasks.add(answer.task)
        answer.task.add_done_callback(self._tasks.discard)

    def _take_turn(self) -> list[Step]:
        steps: list[Step] = []
        while self._script:
            steps.append(step := self._script.popleft())
            if isinstance(step, Stall | Fail | Barge | GoOn | HangUp):
                break
            if isinstance(step, Say) and not step.goes_on:
                while self._script and isinstance(self._script[0], Use | Barge):
                    steps.append(self._script.popleft())
                break
        return steps

    async def _play(self, answer: _Answer) -> None:
        calls: list[ToolCall] = []
        for place, step in enumerate(answer.steps):
            following = answer.steps[place + 1] if place + 1 < len(answer.steps) else None
            match step:
                case Call(name=name, args=args, id=id):
                    calls.append(ToolCall(id, name, dict(args)))
                    if not isinstance(following, Call):
                        await self._ask_for(answer, number(calls), following if isinstance(following, Cancel) else None)
                        calls = []
                case Say():
                    barges = [each for each in answer.steps[place + 1 :] if isinstance(each, Barge)]
                    await self._say(answer, step, None if step.goes_on or not barges else barges[0])
                case Use(input_tokens=input_tokens, output_tokens=output_tokens):
                    self._emit(Usage(answer.turn, input_tokens, output_tokens))
                case Pause(ms=ms):
                    await asyncio.sleep(ms / 1000)
                case Stall():
                    await asyncio.Event().wait()
                case Fail(retry_after_s=wait_s, kind=kind):
                    failed = TurnFailed(answer.turn, step.message, step.retryable, step.rate_limited, wait_s, kind)
                    self._end_answer(answer, failed)
                    return
                case GoOn(after_ms=after_ms):
                    await asyncio.sleep(after_ms / 1000)
                    self._end_answer(answer, Interrupted(answer.turn))
                    return
                case Resumable() | GoAwayIn() | HangUp():
                    self._play_now(step)
        self._end_answer(answer, GenerationComplete(answer.turn))

    async def _ask_for(self, answer: _Answer, calls: list[ToolCall], cancel: Cancel | None) -> None:
        answer.calls = tuple(calls)
        answer.has_results.clear()
        self._emit_piece(answer, ToolCalls(answer.turn, answer.calls))
        try:
            async with asyncio.timeout(None if cancel is None else cancel.after_ms / 1000):
                await answer.has_results.wait()
        except TimeoutError:
            assert cancel is not None
            open_ids = [call.id for call in answer.calls if call.id is not None]
            ids = tuple(id for id in open_ids if cancel.ids is None or id in cancel.ids)
            answer.calls = tuple(call for call in answer.calls if call.id not in ids)
            self._emit_piece(answer, ToolCancelled(answer.turn, ids))
            if answer.calls:
                await answer.has_results.wait()
        self.prompts.append(self.messages)

    async def _say(self, answer: _Answer, step: Say, barge: Barge | None) -> None:
        results = " ".join(result.spoken for result in self.results if result.spoken)
        step = replace(step, text=step.text.replace("{results}", results))
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        pieces = timeline(
            answer.turn,
            step.text,
            first_text_ms=step.first_text_ms,
            first_audio_ms=step.first_audio_ms,
            audio_ms=step.audio_ms if self.profile.speaks else 0,
            ends=not step.goes_on,
        )
        for at_ms, event in pieces:
            delay_s = begun_s + at_ms / 1000 - loop.time()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            if isinstance(event, OutputText):
                answer.said += event.text
            self._emit_piece(answer, event)
            if barge is not None and isinstance(event, OutputAudio) and answer.turn not in self._barges:
                self._barges[answer.turn] = loop.call_later(barge.after_ms / 1000, self._barge, answer.turn)

    def _emit_piece(self, answer: _Answer, event: LiveEvent) -> None:
        if answer.turn in self._answers:
            self._emit(event)
            self._tell_heard(answer, "late")

    def _barge(self, turn: str) -> None:
        if turn not in self._answers:
            self._emit(Interrupted(turn))
        for answer in list(self._answers.values()):
            self._end_answer(answer, Interrupted(answer.turn))

    def _forestall_barge(self, turn: str) -> None:
        if turn in self._barges:
            self._barges[turn].cancel()

    def _void_all(self) -> None:
        for turn in self._barges:
            self._forestall_barge(turn)
        for answer in list(self._answers.values()):
            self._end_answer(answer)

    def _end_answer(self, answer: _Answer, *last: LiveEvent) -> None:
        if self._answers.pop(answer.turn, None) is None:
            return
        if answer.task is not None and answer.task is not asyncio.current_task():
            answer.task.cancel()
        if answer.said:
            self._own.set_answer(answer.turn, answer.said)
        self._tell_heard(answer, "late")
        for event in (*last, TurnComplete(answer.turn)):
            self._emit(event)
        self._tell_heard(answer, "after")
        if not self._answers:
            self._play_unasked()

    # The connection.

    def _play_unasked(self) -> None:
        while not self.closed and self._script and isinstance(step := self._script[0], Unasked):
            self._script.popleft()
            self._play_now(step)

    def _play_now(self, step: Unasked) -> None:
        match step:
            case Resumable(handle=handle):
                self._emit(ResumptionUpdate(handle))
            case GoAwayIn(time_left_ms=time_left_ms):
                self._emit(GoAway(time_left_ms))
                self._later(time_left_ms, self._hang_up, Closed("the time was over", CloseKind.GO_AWAY))
            case HangUp():
                self._hang_up(Closed(step.reason, step.kind, step.retry_after_s))

    def _hang_up(self, closed: Closed) -> None:
        self._emit(closed)
        self._end()

    def _end(self) -> None:
        self.closed = True
        self._has_events.set()
        for timer in (*self._barges.values(), *self._timers):
            timer.cancel()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _later(self, ms: int, do: Callable[..., None], *args: Any) -> None:
        self._timers.add(asyncio.get_running_loop().call_later(ms / 1000, do, *args))

    def _emit(self, event: LiveEvent) -> None:
        if not self.closed:
            self._outbox.append((asyncio.get_running_loop().time() + self._latency_s, event))
            self._has_events.set()


def _input_ms(size: int) -> float:
    return size / 2 / INPUT_HZ * 1000
