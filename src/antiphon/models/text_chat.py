"""Answers turns with a text model: its messages are passed on, and its calls wait for their results."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, cast

from antiphon.models.background import BackgroundTasks
from antiphon.models.base import (
    CallRequested,
    Completion,
    Event,
    FailureKind,
    MessageComplete,
    ModelError,
    Prompt,
    TextDelta,
    TextModel,
    TokensUsed,
)
from antiphon.models.bounded import TurnTimer
from antiphon.models.expectation import Expectation
from antiphon.models.live import (
    GenerationComplete,
    LiveContext,
    LiveEvent,
    OutputText,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    Usage,
    messages_of,
)
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall, number
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

MAX_MESSAGES: Final = 8
"""How many messages a model may use for one answer. The gate refuses calls beyond the budget long before; this stops a
model that keeps calling."""

log = get_logger(__name__)


def step_key(step: int) -> str:
    """Makes the key for calls without a provider's id, from the number of messages of the answer before them."""
    return f"step{step}"


def make_prompt(context: LiveContext, messages: Sequence[Message], completion: Completion | None = None) -> Prompt:
    return Prompt(
        context.system,
        tuple(messages),
        context.tools,
        context.mode,
        mode_note=context.mode_note,
        allows_local=context.allows_local,
        summary=context.summary,
        completion=completion,
    )


def check_completion(completion: Completion | None, messages: Sequence[Message]) -> Completion | None:
    """Returns it if something was called for the first words. `messages` are those before the whole is answered."""
    if completion is None:
        return None
    for message in reversed(messages):
        match message:
            case AssistantMessage(calls=(_, *_)):
                return completion
            case UserMessage(text=text) if not completion.is_answered or text == completion.first_words:
                return None
    return None


@dataclass(eq=False, slots=True)
class _Answer:
    """The answer to one turn, while it is being generated."""

    turn: str
    messages: list[Message]
    """The prompt: the transcript, then the messages with calls since, with their results."""
    completion: Completion | None = None
    """`Prompt.completion`."""
    steps: int = 0
    """How many messages of the prompt are part of this answer."""
    waiting: list[ToolCall] = field(default_factory=list)
    """Calls of the last message that have no result yet."""
    results: list[ToolAnswer] = field(default_factory=list)
    has_results: asyncio.Event = field(default_factory=asyncio.Event)
    is_local: bool = True
    """Whether all messages so far were the offline assistant's, in place of the model."""
    expects: Expectation = Expectation.NOTHING
    """What the last message asks the user for."""
    task: "asyncio.Task[None] | None" = None

    def add(self, said: str) -> None:
        """Adds a message of the model and the results of its calls to the prompt."""
        more = messages_of(said, self.results, key=step_key(self.steps))
        self.messages += more
        self.steps += len(more)
        self.results = []


class TextChat:
    """Answers one turn at a time with a text model. Between turns it keeps nothing: the transcript is the session's."""

    def __init__(self, model: TextModel, emit: Callable[[LiveEvent], None]) -> None:
        self._model = model
        self._name = model.profile.name
        self._emit = emit
        self._context: LiveContext | None = None
        self._is_closed = False
        self._answer: _Answer | None = None
        self._tasks = BackgroundTasks()

    @property
    def turn(self) -> str | None:
        """The turn whose answer is under way."""
        return None if self._answer is None else self._answer.turn

    @property
    def is_open(self) -> bool:
        return self._context is not None and not self._is_closed

    def check_open(self) -> LiveContext:
        """Raises `ModelError` before `connect` and after `close`."""
        if self._is_closed:
            raise ModelError(f"The conversation with {self._name} is closed. Connect a new one.")
        if self._context is None:
            raise ModelError(f"{self._name} is not connected. Connect it before it is used.", retryable=False)
        return self._context

    def connect(self, context: LiveContext) -> None:
        self._context = context
        self.check_open()

    def respond(self, turn: str, completion: Completion | None = None) -> None:
        """Begins to answer the turn, which is in the transcript. No other answer may be under way.

        `completion` is given if the turn was completed after its first words were final.
        """
        context = self.check_open()
        messages = list(context.transcript.messages)
        answer = self._answer = _Answer(turn, messages, check_completion(completion, messages))
        answer.task = self._tasks.start(self._run(answer, context))

    def say(self, turn: str, text: str) -> None:
        """Answers with exactly these words. No other answer may be under way."""
        self.check_open()
        for event in (OutputText(turn, text), GenerationComplete(turn), TurnComplete(turn)):
            self._emit(event)

    def send_tool_results(self, turn: str, answers: Sequence[ToolAnswer]) -> None:
        """Results that the answer under way does not wait for are ignored: the session adds them to the transcript."""
        answer = self._answer
        if answer is None or answer.turn != turn:
            return
        for each in answers:
            if each.call in answer.waiting:
                answer.waiting.remove(each.call)
                answer.results.append(each)
        if not answer.waiting:
            answer.has_results.set()

    def stop(self) -> str | None:
        """Abandons the answer under way and returns its turn, None if there is none. No more events of it come."""
        answer, self._answer = self._answer, None
        if answer is None:
            return None
        assert answer.task is not None
        answer.task.cancel()
        return answer.turn

    async def close(self) -> None:
        self._is_closed = True
        self.stop()
        await self._tasks.aclose()

    def _reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        return self._model.reply(prompt)

    def _tell(self, answer: _Answer, event: LiveEvent) -> None:
        """Emits an event of an answer, unless it has been abandoned."""
        if self._answer is answer:
            self._emit(event)

    async def _run(self, answer: _Answer, context: LiveContext) -> None:
        turn = answer.turn
        end: LiveEvent
        try:
            await self._make(answer, context)
        except ModelError as error:
            end = TurnFailed.because_of(error, turn)
        except Exception:
            log.exception("model_failed_unexpectedly", model=self._name)
            message = f"{self._name} failed unexpectedly. Please try again."
            end = TurnFailed(turn, message, kind=FailureKind.UNEXPECTED)
        else:
            end = GenerationComplete(turn, is_local=answer.is_local, expects=answer.expects)
        self._tell(answer, end)
        if self._answer is answer:
            self._answer = None
            self._emit(TurnComplete(turn))

    async def _make(self, answer: _Answer, context: LiveContext) -> None:
        """Passes on messages of the model until one has no calls."""
        timer, has_spoken = TurnTimer(self._name), False
        for _ in range(MAX_MESSAGES):
            said, calls = await self._pass_on_message(answer, context, timer)
            has_spoken = has_spoken or bool(said.strip())
            if not calls:
                break
            await self._wait_for_results(answer, calls)
            answer.add(said)
        else:
            message = f"{self._name} used one tool after another without answering, so I stopped it."
            raise ModelError(message, kind=FailureKind.LOOPED)
        if not has_spoken:
            self._speak_results(answer)

    def _speak_results(self, answer: _Answer) -> None:
        """Answers with the spoken words of the tools' results, if any, because the model has nothing to say."""
        spoken = " ".join(_spoken_results(answer.messages))
        if not spoken:
            message = f"{self._name} said nothing. Please ask again, or in other words."
            raise ModelError(message, kind=FailureKind.EMPTY)
        self._tell(answer, OutputText(answer.turn, spoken))

    async def _pass_on_message(
        self, answer: _Answer, context: LiveContext, timer: TurnTimer
    ) -> tuple[str, list[ToolCall]]:
        """Passes on the words of one message, and returns them and its calls."""
        turn = answer.turn
        pieces, calls = list[str](), list[ToolCall]()
        prompt = make_prompt(context, answer.messages, answer.completion)
        async with timer.running(), aclosing(cast(AsyncGenerator[Event, None], self._reply(prompt))) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        pieces.append(text)
                        self._tell(answer, OutputText(turn, text))
                    case CallRequested(call=call):
                        calls.append(call)
                    case TokensUsed(input_tokens=input_tokens, output_tokens=output_tokens):
                        self._tell(answer, Usage(turn, input_tokens, output_tokens))
                    case MessageComplete(is_local=is_local, expects=expects):
                        answer.is_local = answer.is_local and is_local
                        answer.expects = expects
        return "".join(pieces), number(calls)

    async def _wait_for_results(self, answer: _Answer, calls: list[ToolCall]) -> None:
        answer.waiting = list(calls)
        answer.has_results.clear()
        self._tell(answer, ToolCalls(answer.turn, tuple(calls)))
        await answer.has_results.wait()


def _spoken_results(messages: Sequence[Message]) -> list[str]:
    """Returns the spoken words of this turn's results: those after the last words of the user or of the model."""
    spoken: list[str] = []
    for message in reversed(messages):
        match message:
            case ToolMessage(spoken=str(words), ok=True):
                spoken.insert(0, words)
            case ToolMessage():
                pass
            case AssistantMessage(text=text) if not text.strip():
                pass
            case _:
                break
    return spoken
