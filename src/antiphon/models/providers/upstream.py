"""What all providers of live models share: queued input, the turns of a connection with their events, and its life.

A provider's module translates between its wire and these. The rules of `LiveModel` are kept here, once: one
`TurnComplete` for each turn and nothing after it, one final transcript at most, no event of an answer that was dropped,
and the same limits as for text models.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import msgspec

from antiphon.models.background import BackgroundTasks
from antiphon.models.base import FailureKind, ModelError
from antiphon.models.bounded import (
    MAX_CALL_CHARS,
    MAX_CALLS,
    TOO_MANY_CALLS,
    AnswerText,
    LimitExceeded,
    explain_limit,
)
from antiphon.models.live import (
    GenerationComplete,
    InputTranscript,
    Interrupted,
    LiveEvent,
    OutputAudio,
    OutputText,
    ToolAnswer,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    UpstreamError,
    Usage,
)
from antiphon.models.text_live import EventQueue
from antiphon.security.surrogates import StreamRepairer, repair, repair_json
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall, number

INPUT_HZ: Final = 16_000
"""The rate of the microphone audio that sessions send."""
MAX_QUEUED_AUDIO_S: Final = 30.0
"""How much microphone audio waits for a slow network. The oldest is dropped beyond this."""
WRITE_S: Final = 15.0
"""How long the network may take to accept one message. A connection that takes longer is lost: some providers answer
pings too late for them to tell."""
MAX_ANSWER_AUDIO_S: Final = 3_600.0
"""The longest audio of one answer. A model that speaks longer is stuck."""
MAX_CALL_MESSAGES: Final = 16
"""How often a model may call tools in one answer. The gate refuses calls beyond its budget long before."""
MAX_TRANSCRIPT_CHARS: Final = 20_000
"""The longest transcript of one turn: about twenty minutes of speech."""
MAX_REMEMBERED: Final = 64
"""How many turns and results are remembered, to ignore what comes twice."""
SPOKEN_CHARS_PER_S: Final = 16.0
"""About how fast speech is. A provider may send the words of an answer long before their audio."""
SENTENCE_ENDS: Final = ".!?…:"
REST_MS: Final = 20
"""The silence that carries words of which no audio is left."""

log = get_logger(__name__)

Write = Callable[[], Awaitable[None]]


class Outgoing:
    """Input on its way to the provider. One task writes it, in order, so that no caller waits for a network."""

    def __init__(
        self,
        write_audio: Callable[[bytes], Awaitable[None]],
        name: str,
        write_now: Callable[[bytes], bool] = lambda pcm: False,
    ) -> None:
        """`write_now` writes audio unless that takes waiting, and returns whether it has, which saves a task switch."""
        self._write_audio = write_audio
        self._write_now = write_now
        self._name = name
        self._is_idle = False
        """Whether everything has been written."""
        self._items: deque[bytes | Write] = deque()
        self._has_items = asyncio.Event()
        self._audio_bytes = 0
        self._is_dropping = False
        self._writing_since_s: float | None = None
        """When the write in progress began."""
        self._stall_timer: asyncio.TimerHandle | None = None

    def put(self, write: Write) -> None:
        self._is_idle = False
        self._items.append(write)
        self._has_items.set()

    def put_audio(self, pcm: bytes) -> None:
        if self._is_idle and self._write_now(pcm):
            return
        self._is_idle = False
        self._items.append(pcm)
        self._audio_bytes += len(pcm)
        self._has_items.set()
        if self._audio_bytes > _pcm_bytes(MAX_QUEUED_AUDIO_S):
            self._drop_oldest_audio()

    def drop_audio(self) -> None:
        """Drops the audio that has not been written yet."""
        self._items = deque(item for item in self._items if not isinstance(item, bytes))
        self._audio_bytes = 0

    async def run(self) -> None:
        """Writes until it is cancelled, or until the connection is lost or stalls, whose error is raised."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:
                while True:
                    while self._items:
                        item = self._items.popleft()
                        self._writing_since_s = loop.time()
                        # One timer serves many writes: a timeout for each would cost as much as the write itself.
                        if self._stall_timer is None:
                            self._stall_timer = loop.call_later(WRITE_S, self._check_stall, limit)
                        if isinstance(item, bytes):
                            self._audio_bytes -= len(item)
                            await self._write_audio(item)
                        else:
                            await item()
                    self._writing_since_s = None
                    self._is_dropping = False
                    self._is_idle = True
                    self._has_items.clear()
                    await self._has_items.wait()
        finally:
            self._is_idle = False
            if self._stall_timer is not None:
                self._stall_timer.cancel()

    def _check_stall(self, limit: asyncio.Timeout) -> None:
        """Ends `run` with `TimeoutError` if the write in progress has taken too long, or looks again later."""
        self._stall_timer = None
        if self._writing_since_s is not None:
            loop = asyncio.get_running_loop()
            left_s = self._writing_since_s + WRITE_S - loop.time()
            if left_s <= 0:
                limit.reschedule(loop.time())
            else:
                self._stall_timer = loop.call_later(left_s, self._check_stall, limit)

    def _drop_oldest_audio(self) -> None:
        oldest = next(place for place, item in enumerate(self._items) if isinstance(item, bytes))
        self._audio_bytes -= len(self._items[oldest])  # type: ignore[arg-type]
        del self._items[oldest]
        if not self._is_dropping:
            self._is_dropping = True
            log.warning("model_input_dropped", model=self._name, queued_s=MAX_QUEUED_AUDIO_S)


@dataclass(eq=False, slots=True)
class Answer:
    """The answer to one turn, while it is being generated."""

    turn: str
    is_asked: bool
    """Whether the session asked for it. Otherwise it answers what the model heard."""
    said: str = ""
    """The words so far."""
    audio_ms: float = 0.0
    is_generated: bool = False
    """Whether `GenerationComplete` was emitted."""
    open_calls: list[ToolCall] = field(default_factory=list)
    """Calls whose results have not come yet."""
    call_messages: int = 0
    is_after_calls: bool = False
    """Whether nothing was said since the last calls."""
    measure: AnswerText = field(default_factory=AnswerText)
    repairer: StreamRepairer = field(default_factory=StreamRepairer)
    unvoiced: str = ""
    """Words that no piece of audio carries yet."""
    half_sample: bytes = b""

    @property
    def is_empty(self) -> bool:
        """Whether nothing came of it yet."""
        return not self.said.strip() and not self.audio_ms and not self.call_messages


class Turns:
    """The turns of one connection. At most one answer is under way; what comes for any other is not passed on."""

    def __init__(
        self,
        emit: Callable[[LiveEvent], None],
        *,
        name: str,
        output_hz: int,
        answer_within_s: float,
        make_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        """`answer_within_s` is how long the provider may be silent while an answer is awaited."""
        self.answer: Answer | None = None
        """The answer that is under way."""
        self.heard_turn = make_id()
        """The id of the turn that is being heard, whose answer has not begun."""
        self.finished: deque[Answer] = deque(maxlen=MAX_REMEMBERED)
        """The last answers that are no longer under way, for what is told about them later."""
        self._emit = emit
        self._name = name
        self._output_hz = output_hz
        self._answer_within_s = answer_within_s
        self._make_id = make_id
        self._transcribed: deque[str] = deque(maxlen=MAX_REMEMBERED)
        """Turns whose final transcript has been emitted."""
        self._results_taken: deque[tuple[str, ToolCall]] = deque(maxlen=MAX_REMEMBERED)
        self._watchdog: asyncio.TimerHandle | None = None

    # Beginning and end.

    def ask(self, turn: str) -> Answer:
        """Begins the answer that the session has asked for. The answer under way is dropped."""
        self.drop()
        self.answer = answer = Answer(turn, is_asked=True)
        self.watch()
        return answer

    def hear(self) -> Answer:
        """Begins the answer to what was heard, or the wait for it. The answer under way is dropped."""
        self.drop()
        turn, self.heard_turn = self.heard_turn, self._make_id()
        self._emit(TurnStarted(turn))
        self.answer = answer = Answer(turn, is_asked=False)
        self.watch()
        return answer

    def end_empty(self, turn: str) -> None:
        """Completes a turn in which nothing was heard."""
        if turn == self.heard_turn:
            self.heard_turn = self._make_id()
        self._emit(TurnComplete(turn))

    def drop(self) -> Answer | None:
        """Completes the answer under way and returns it. Nothing that still comes for it is passed on."""
        answer = self.answer
        if answer is not None:
            self._end(answer)
        return answer

    def finish_generation(self, answer: Answer) -> None:
        """The whole answer has been generated."""
        if answer is not self.answer or answer.is_generated:
            return
        self.say(answer, "", is_last=True)
        if answer.audio_ms and answer.unvoiced:
            silence = bytes(2 * (REST_MS * self._output_hz // 1000))
            self._emit(OutputAudio(answer.turn, silence, answer.unvoiced, last=True))
        answer.is_generated = True
        self.watch()
        self._emit(GenerationComplete(answer.turn))

    def complete(self, answer: Answer) -> None:
        """The turn is over. An answer that was asked for must have come."""
        if answer is not self.answer:
            return
        if answer.is_empty and answer.is_asked:
            message = f"{self._name} said nothing. Please ask again, or in other words."
            self.fail(answer, ModelError(message, kind=FailureKind.EMPTY))
            return
        self.finish_generation(answer)
        self._end(answer)

    def fail(self, answer: Answer, error: ModelError) -> None:
        """The answer has failed; the connection stays."""
        if answer is self.answer:
            self._emit(TurnFailed.because_of(error, answer.turn))
            self._end(answer)

    def interrupted(self, answer: Answer) -> None:
        """The provider noticed that the user speaks over the answer."""
        if answer is self.answer:
            self._emit(Interrupted(answer.turn))
            self._end(answer)

    def close(self) -> None:
        """No more events come, and no timer is left."""
        self.answer = None
        self.watch()

    def watch(self) -> None:
        """Starts the time again in which something must come; it does not pass while tools run or nobody waits."""
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        answer = self.answer
        if answer is not None and not answer.open_calls:
            # A provider may complete the turn only when the whole answer must have been played.
            playback_s = answer.audio_ms / 1000 if answer.is_generated else 0.0
            loop = asyncio.get_running_loop()
            self._watchdog = loop.call_later(self._answer_within_s + playback_s, self._give_up, answer)

    # Parts of an answer.

    def say(self, answer: Answer, text: str, *, is_last: bool = False) -> None:
        """Passes on the next words. A half of a character waits for its other half, unless the words are the last."""
        if answer is not self.answer:
            return
        text = answer.repairer.push(text) + (answer.repairer.finish() if is_last else "")
        if text and answer.is_after_calls:
            answer.is_after_calls = False
            # It begins another message. Not all providers separate it from the words before the calls.
            if answer.said and answer.said[-1] in SENTENCE_ENDS and not text[0].isspace():
                text = f" {text}"
        try:
            answer.measure.add(text)
        except LimitExceeded as error:
            self.fail(answer, explain_limit(self._name, error))
            return
        self.watch()
        if text:
            answer.said += text
            answer.unvoiced += text
            self._emit(OutputText(answer.turn, text))

    def play(self, answer: Answer, pcm: bytes) -> None:
        """Passes on audio, with the words that came since the audio before it, as far as it can contain them."""
        if answer is not self.answer:
            return
        pcm = answer.half_sample + pcm
        whole = len(pcm) - len(pcm) % 2
        pcm, answer.half_sample = pcm[:whole], pcm[whole:]
        answer.audio_ms += len(pcm) / 2 / self._output_hz * 1000
        if answer.audio_ms > MAX_ANSWER_AUDIO_S * 1000:
            limit = LimitExceeded(f"spoke for more than {MAX_ANSWER_AUDIO_S / 60:.0f} minutes")
            self.fail(answer, explain_limit(self._name, limit))
            return
        self.watch()
        if pcm:
            self._emit(OutputAudio(answer.turn, pcm, _take_voiced(answer)))

    def call(self, answer: Answer, calls: Sequence[ToolCall]) -> None:
        """Passes on all calls of one message."""
        if answer is not self.answer or not calls:
            return
        answer.call_messages += 1
        try:
            checked = _check_calls(calls, answer.call_messages)
        except LimitExceeded as error:
            self.fail(answer, explain_limit(self._name, error))
            return
        answer.open_calls += checked
        answer.is_after_calls = True
        self.watch()
        self._emit(ToolCalls(answer.turn, tuple(checked)))

    def cancel_calls(self, ids: Sequence[str]) -> None:
        """The provider no longer needs these results."""
        answer = self.answer
        if answer is None:
            return
        cancelled = tuple(call.id for call in answer.open_calls if call.id is not None and call.id in ids)
        answer.open_calls = [call for call in answer.open_calls if call.id not in cancelled]
        if cancelled:
            self.watch()
            self._emit(ToolCancelled(answer.turn, cancelled))

    def take_results(self, turn: str, answers: Sequence[ToolAnswer]) -> tuple[list[ToolAnswer], list[ToolAnswer]]:
        """Returns the results that the answer under way waits for, and those that only belong to the context. What
        came before is in neither."""
        awaited, late = list[ToolAnswer](), list[ToolAnswer]()
        answer = self.answer
        for each in answers:
            if answer is not None and answer.turn == turn and each.call in answer.open_calls:
                answer.open_calls.remove(each.call)
                awaited.append(each)
            elif (turn, each.call) not in self._results_taken:
                late.append(each)
            self._results_taken.append((turn, each.call))
        self.watch()
        return awaited, late

    def use(self, answer: Answer, input_tokens: int, output_tokens: int) -> None:
        if answer is self.answer:
            self._emit(Usage(answer.turn, max(input_tokens, 0), max(output_tokens, 0)))

    # What the user said. It may come at any time, also after the end of its turn.

    def transcribe(self, turn: str, text: str, *, is_final: bool) -> None:
        """Passes on what the user said in a turn: all of it so far, not only the new words."""
        text = repair(text).strip()[:MAX_TRANSCRIPT_CHARS]
        if not text or turn in self._transcribed:
            return
        if is_final:
            self._transcribed.append(turn)
        self._emit(InputTranscript(turn, text, is_final))

    def _end(self, answer: Answer) -> None:
        self.answer = None
        self.finished.append(answer)
        self.watch()
        self._emit(TurnComplete(answer.turn))

    def _give_up(self, answer: Answer) -> None:
        if answer.is_generated:
            self.complete(answer)
            return
        message = f"{self._name} did not answer within {self._answer_within_s:.0f} seconds. Please try again."
        self.fail(answer, ModelError(message, kind=FailureKind.TIMEOUT))


class Upstream:
    """The life of a connection to a provider: not connected, open, and closed by the session or lost."""

    def __init__(self, name: str) -> None:
        self.queue = EventQueue()
        self.is_open = False
        self._name = name
        self._tasks = BackgroundTasks()
        self._is_over = False

    def check_open(self) -> None:
        """Raises `ModelError` before `open` and after the end."""
        if self._is_over:
            raise ModelError(f"The conversation with {self._name} is closed. Connect a new one.")
        if not self.is_open:
            raise ModelError(f"{self._name} is not connected. Connect it before it is used.", retryable=False)

    def check_not_closed(self) -> None:
        """Raises `ModelError` for a model that was closed before it is connected."""
        if self._is_over:
            self.check_open()

    def open(self, *work: Coroutine[Any, Any, None]) -> None:
        """The connection is made. `work` reads from it and writes to it until the end."""
        self.is_open = True
        for each in work:
            self._tasks.start(each)

    def emit(self, event: LiveEvent) -> None:
        if not self._is_over:
            self.queue.put(event)

    def events(self) -> AsyncIterator[LiveEvent]:
        return self.queue.read()

    def lose(self, error: UpstreamError) -> None:
        """The provider has ended the connection."""
        if self._is_over:
            return
        self.emit(error.as_event())
        self.is_open, self._is_over = False, True
        self.queue.finish()

    async def close(self) -> None:
        """Ends the events at once, and waits for the tasks."""
        self.is_open, self._is_over = False, True
        self.queue.close()
        await self._tasks.aclose()


def _take_voiced(answer: Answer) -> str:
    """Takes the words that the audio so far can contain, by which it is told what a user has heard of an answer."""
    room = int(answer.audio_ms / 1000 * SPOKEN_CHARS_PER_S) - (len(answer.said) - len(answer.unvoiced))
    end = len(answer.unvoiced)
    if end > room:
        end = max(answer.unvoiced.rfind(" ", 0, max(room, 0) + 1), 0)
    words, answer.unvoiced = answer.unvoiced[:end], answer.unvoiced[end:]
    return words


def _check_calls(calls: Sequence[ToolCall], messages: int) -> list[ToolCall]:
    """Repairs the texts of calls and numbers them. Raises `LimitExceeded`."""
    if len(calls) > MAX_CALLS:
        raise LimitExceeded(TOO_MANY_CALLS)
    if messages > MAX_CALL_MESSAGES:
        raise LimitExceeded("used one tool after another without answering")
    try:
        repaired = [
            ToolCall(repair(call.id) if call.id else None, repair(call.name), repair_json(call.args), extra=call.extra)
            for call in calls
        ]
        chars = sum(len(call.id or "") + len(call.name) + len(msgspec.json.encode(call.args)) for call in repaired)
    except (RecursionError, OverflowError, TypeError, ValueError):
        raise LimitExceeded("asked for a tool call whose arguments are no JSON that I can read") from None
    if chars > MAX_CALL_CHARS:
        raise LimitExceeded(f"asked for tool calls of more than {MAX_CALL_CHARS:,} characters")
    return number(repaired)


def _pcm_bytes(seconds: float) -> int:
    return int(seconds * INPUT_HZ) * 2
