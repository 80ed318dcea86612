"""A live model that hears, says and does what it is told to, at the times that it is told."""

import asyncio
import re
from array import array
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from antiphon.models.base import ModelError, OutputText
from antiphon.models.live import (
    Closed,
    GenerationComplete,
    GoAway,
    InputTranscript,
    Interrupted,
    LiveContext,
    LiveEvent,
    LiveProfile,
    OutputAudio,
    Timings,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    forget_unheard,
    note,
)
from antiphon.tools.call import ToolCall, number
from antiphon.transcript import Message, UserMessage

INPUT_HZ: Final = 16_000
OUTPUT_HZ: Final = 22_050
TEXT_GAP_MS: Final = 20
"""Between the clauses of an answer's text."""
REAL_TIME_FACTOR: Final = 0.2
"""How long a second of speech takes to make, in seconds."""

PROFILE: Final = LiveProfile(
    name="scripted",
    speaks=True,
    hears=True,
    output_hz=OUTPUT_HZ,
    resumable=False,
    needs_network=False,
    tool_schemas="openai_realtime",
)

# A ramp, so that a test can see which part of an answer it holds.
_SECOND_OF_AUDIO: Final = array("h", range(OUTPUT_HZ)).tobytes()


@dataclass(frozen=True, slots=True)
class Hear:
    """The user's turn is over when this much audio has come after the last answer: any audio, it is not listened to."""

    text: str
    after_ms: int = 800
    timings: Timings | None = None
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """An answer, clause by clause; the times count from the user's turn, or from the results before it."""

    text: str
    first_text_ms: int = 100
    first_audio_ms: int = 200
    audio_ms: int = 1_500
    goes_on: bool = False
    """Whether the turn has more steps: calls, usually."""


@dataclass(frozen=True, slots=True)
class Call:
    """Those that stand side by side in the script are of one message."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing comes until the user interrupts or says something else."""


@dataclass(frozen=True, slots=True)
class Fail:
    message: str
    retryable: bool = True
    rate_limited: bool = False


@dataclass(frozen=True, slots=True)
class Barge:
    """The user speaks over the answer before it, this long after its first audio."""

    after_ms: int


@dataclass(frozen=True, slots=True)
class GoOn:
    """The user goes on speaking, this long after what seemed to be the end of the turn. Nothing of an answer comes."""

    after_ms: int


@dataclass(frozen=True, slots=True)
class GoAwayIn:
    """Told as soon as the script comes to it. The connection really ends when the time is over."""

    time_left_ms: int


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection ends as soon as the script comes to it."""

    reason: str = "the connection was lost"
    retryable: bool = True


Step = Hear | Say | Call | Stall | Fail | Barge | GoOn | GoAwayIn | HangUp


class ScriptedLive:
    """A turn of the user plays the script up to the end of the next answer; when it is over, answers are empty.

    A typed turn takes the place of a `Hear`. What is left of an answer that becomes void is skipped.
    """

    def __init__(
        self, script: Sequence[Step] = (), *, profile: LiveProfile = PROFILE, refuses: ModelError | None = None
    ) -> None:
        self.profile = profile
        self.context: LiveContext | None = None
        self.messages: list[Message] = []
        """The conversation as it remembers it."""
        self.resumed_with: str | None = None
        self.audio_bytes = 0
        self.texts: list[str] = []
        self.said: list[str] = []
        self.results: list[ToolAnswer] = []
        """All that came, those that nobody waited for too."""
        self.interrupts = 0
        self.heard: list[str | None] = []
        """Of each answer that was interrupted, what the user heard."""
        self.voice: tuple[str | None, float] | None = None
        self.playing_bytes = 0
        """Of the audio, what came while the client was playing."""
        self.closed = False
        self._script = deque(script)
        self._refuses = refuses
        self._outbox: deque[LiveEvent] = deque()
        self._stirred = asyncio.Event()
        self._turn: asyncio.Task[None] | None = None
        self._unheard_ms = 0.0
        """Audio since the last answer."""
        self._calls: tuple[ToolCall, ...] = ()
        """Those that wait for results."""
        self._answered = asyncio.Event()
        self._begun_at = 0
        """Where the last answer begins among the messages."""
        self._said = ""
        """Of the message under way."""
        self._barging: asyncio.TimerHandle | None = None
        self._leaving: asyncio.TimerHandle | None = None

    @property
    def audio_ms(self) -> float:
        """How much audio it was sent."""
        return _input_ms(self.audio_bytes)

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        if self._refuses is not None:
            raise self._refuses
        self.context, self.resumed_with = context, resume
        self.messages = list(context.messages)
        self._begun_at = len(self.messages)
        self._play_unasked()

    async def events(self) -> AsyncIterator[LiveEvent]:
        while self._outbox or not self.closed:
            if self._outbox:
                yield self._outbox.popleft()
            else:
                self._stirred.clear()
                await self._stirred.wait()

    def set_voice(self, voice: str | None, speed: float) -> None:
        self.voice = (voice, speed)

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        self._require_connection()
        self.audio_bytes += len(pcm)
        self.playing_bytes += len(pcm) * playing
        if self._turn is not None or not self._script:
            return
        step = self._script[0]
        if isinstance(step, Hear):
            before_ms, self._unheard_ms = self._unheard_ms, self._unheard_ms + _input_ms(len(pcm))
            if self._unheard_ms >= step.after_ms:
                self._hear(step)
            elif before_ms < step.after_ms / 2 <= self._unheard_ms:
                words = step.text.split()
                self._emit(InputTranscript(" ".join(words[: (len(words) + 1) // 2]), is_final=False))

    async def end_audio(self) -> None:
        if self._unheard_ms and self._script and isinstance(step := self._script[0], Hear):
            self._hear(step)
        else:
            self._emit(TurnComplete())

    async def send_text(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        self._require_connection()
        self.texts.append(text)
        self.results += ran
        await self._stop()
        if self._script and isinstance(self._script[0], Hear):
            self._script.popleft()
        if text:
            self.messages.append(UserMessage(text))
        if ran:
            note(self.messages, "", ran)
        self._begin()

    async def say(self, text: str) -> None:
        """These words, as an answer that comes before what the script has next."""
        self._require_connection()
        self.said.append(text)
        await self._stop()
        self._script.appendleft(Say(text))
        self._begin()

    async def send_tool_results(self, answers: Sequence[ToolAnswer]) -> None:
        self.results += answers
        if self._calls and tuple(answer.call for answer in answers) == self._calls:
            self._calls = ()
            self._note(answers)
            self._answered.set()

    async def interrupt(self, heard: str | None = None) -> None:
        self.interrupts += 1
        self.heard.append(heard)
        await self._stop()
        if heard is not None:
            forget_unheard(self.messages, self._begun_at, heard)

    async def close(self) -> None:
        self._end()
        self._outbox.clear()
        await self._stop()

    def _require_connection(self) -> None:
        if self.context is None or self.closed:
            raise ModelError("The scripted model is not connected.", retryable=False)

    def _hear(self, step: Hear) -> None:
        self._script.popleft()
        self._unheard_ms = 0
        if step.timings is not None:
            self._emit(step.timings)
        self._emit(InputTranscript(step.text, is_final=True, goes_on=step.goes_on))
        if not self.profile.waits_to_answer:
            self.messages.append(UserMessage(step.text))
            self._begin()

    def _begin(self) -> None:
        if self.closed:
            return
        self._unheard_ms = 0
        self._begun_at = len(self.messages)
        self._turn = asyncio.create_task(self._play(self._take_turn()))
        self._turn.add_done_callback(self._end_turn)

    def _take_turn(self) -> list[Step]:
        steps: list[Step] = []
        while self._script:
            steps.append(self._script.popleft())
            if isinstance(steps[-1], Stall | Fail | Barge | GoOn | HangUp):
                break
            if isinstance(steps[-1], Say) and not steps[-1].goes_on:
                if self._script and isinstance(self._script[0], Barge):
                    steps.append(self._script.popleft())
                break
        return steps

    async def _play(self, steps: list[Step]) -> None:
        calls: list[ToolCall] = []
        for step, following in zip_longest(steps, steps[1:]):
            match step:
                case Call(name=name, args=args, id=id):
                    calls.append(ToolCall(id, name, dict(args)))
                    if not isinstance(following, Call):
                        await self._ask_for(number(calls))
                        calls = []
                case Say():
                    await self._say(step, following if isinstance(following, Barge) else None)
                case Stall():
                    await asyncio.Event().wait()
                case Fail():
                    self._emit(TurnFailed(step.message, step.retryable, step.rate_limited))
                    return
                case GoOn(after_ms=after_ms):
                    await asyncio.sleep(after_ms / 1000)
                    self._emit(Interrupted())
                    return
                case GoAwayIn() | HangUp():
                    self._leave(step)
        self._emit(GenerationComplete())

    async def _ask_for(self, calls: list[ToolCall]) -> None:
        self._calls = tuple(calls)
        self._answered.clear()
        self._emit(ToolCalls(self._calls))
        await self._answered.wait()

    async def _say(self, step: Say, barge: Barge | None) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for at_ms, event in _timeline(step, speaks=self.profile.speaks):
            delay_s = begun_s + at_ms / 1000 - loop.time()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            if isinstance(event, OutputText):
                self._said += event.text
            self._emit(event)
            if barge is not None and isinstance(event, OutputAudio) and self._barging is None:
                self._barging = loop.call_later(barge.after_ms / 1000, self._barge)

    def _barge(self) -> None:
        self._barging = None
        self._emit(Interrupted())
        if self._turn is not None:
            self._turn.cancel()

    def _end_turn(self, turn: asyncio.Task[None]) -> None:
        self._turn = None
        self._calls = ()
        self._note()
        self._emit(TurnComplete())
        self._play_unasked()

    def _note(self, answers: Sequence[ToolAnswer] = ()) -> None:
        said, self._said = self._said, ""
        if said or answers:
            note(self.messages, said, answers)

    def _play_unasked(self) -> None:
        while not self.closed and self._script and isinstance(step := self._script[0], GoAwayIn | HangUp):
            self._script.popleft()
            self._leave(step)

    def _leave(self, step: GoAwayIn | HangUp) -> None:
        if isinstance(step, HangUp):
            self._hang_up(Closed(step.reason, step.retryable))
            return
        self._emit(GoAway(step.time_left_ms))
        over = Closed("the time was over")
        self._leaving = asyncio.get_running_loop().call_later(step.time_left_ms / 1000, self._hang_up, over)

    def _hang_up(self, closed: Closed) -> None:
        self._emit(closed)
        self._end()
        if self._turn is not None:
            self._turn.cancel()

    def _end(self) -> None:
        self.closed = True
        self._stirred.set()
        for timer in (self._barging, self._leaving):
            if timer is not None:
                timer.cancel()

    async def _stop(self) -> None:
        if self._barging is not None:
            self._barging.cancel()
            self._barging = None
        # Again, if what was heard meanwhile has begun another answer.
        while self._turn is not None:
            self._turn.cancel()
            await asyncio.wait([self._turn])

    def _emit(self, event: LiveEvent) -> None:
        if not self.closed:
            self._outbox.append(event)
            self._stirred.set()


def _timeline(step: Say, *, speaks: bool) -> list[tuple[float, LiveEvent]]:
    """The clauses of an answer as text and as audio, in the order in which they are made."""
    clauses = re.split(r"(?<=[,.;:!?]\s)", step.text)
    made: list[tuple[float, LiveEvent]] = [
        (step.first_text_ms + place * TEXT_GAP_MS, OutputText(clause)) for place, clause in enumerate(clauses)
    ]
    if speaks and step.audio_ms:
        chars, at_ms = 0, float(step.first_audio_ms)
        for place, clause in enumerate(clauses):
            begin, end = (step.audio_ms * part // max(len(step.text), 1) for part in (chars, chars + len(clause)))
            chars += len(clause)
            at_ms = max(at_ms + (REAL_TIME_FACTOR * (end - begin) if place else 0), made[place][0])
            last = place == len(clauses) - 1 and not step.goes_on
            made.append((at_ms, OutputAudio(_ramp(begin, end), clause, last)))
    return sorted(made, key=lambda each: each[0])


def _ramp(begin_ms: int, end_ms: int) -> bytes:
    """The samples between two moments of an answer: lengths add up, however it is divided."""
    begin, end = begin_ms * OUTPUT_HZ // 1000, end_ms * OUTPUT_HZ // 1000
    seconds = end // OUTPUT_HZ + 1
    return (_SECOND_OF_AUDIO * seconds)[2 * begin : 2 * end]


def _input_ms(size: int) -> float:
    return size / 2 / INPUT_HZ * 1000
