"""A text model as a `LiveModel`: without ears and without a voice, it answers what is typed."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final, cast

from antiphon.models.base import CallRequested, Event, FailureKind, ModelError, OutputText, Prompt, TextModel, Usage
from antiphon.models.bounded import TurnTimer
from antiphon.models.health import ModelHealth
from antiphon.models.live import (
    GenerationComplete,
    LiveContext,
    LiveEvent,
    LiveProfile,
    ToolAnswer,
    ToolCalls,
    TurnComplete,
    TurnFailed,
    forget_unheard,
    note,
)
from antiphon.tools.call import ToolCall, number
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

MAX_MESSAGES: Final = 8
"""Of the model in one turn. The gate refuses calls beyond the budget long before; this ends a model that insists."""


class TextLiveModel:
    """Keeps the conversation that the text model does not. An answer in the making is its only task."""

    def __init__(self, model: TextModel, health: ModelHealth | None = None) -> None:
        """`health` is told how each answer ended; all sessions of a process share it."""
        self.profile = LiveProfile(
            name=model.profile.name,
            speaks=False,
            hears=False,
            output_hz=0,
            # Without a handle: all that there is to resume comes with every `connect`.
            resumable=True,
            needs_network=model.profile.needs_network,
            tool_schemas="openai_chat",
        )
        self._model = model
        self._health = health or ModelHealth(model.profile.name)
        self._context: LiveContext | None = None
        self._messages: list[Message] = []
        self._outbox: deque[LiveEvent] = deque()
        self._stirred = asyncio.Event()
        self._closed = False
        self._changing = asyncio.Lock()
        """Held while one answer gives way to another: two callers at once would start two."""
        self._turn: asyncio.Task[None] | None = None
        self._begin = 0
        """Where the last answer begins among the messages."""
        self._open: list[ToolCall] = []
        """Calls of the message under way that have no result yet."""
        self._answers: list[ToolAnswer] = []
        self._answered = asyncio.Event()
        self._void: list[ToolCall] = []
        """Calls of interrupted answers. An action among them may have run all the same."""
        self._late: list[ToolAnswer] = []
        """What came of those, to be told in the next turn."""

    async def connect(self, context: LiveContext, resume: str | None = None) -> None:
        self._context = context
        self._messages = list(context.messages)
        self._begin = len(self._messages)

    async def events(self) -> AsyncIterator[LiveEvent]:
        while not self._closed:
            if self._outbox:
                yield self._outbox.popleft()
            else:
                self._stirred.clear()
                await self._stirred.wait()

    def set_voice(self, voice: str | None, speed: float) -> None:
        """It has none."""

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        message = f"{self.profile.name} cannot hear. Type to it, or set model.voice to a model that listens."
        raise ModelError(message, retryable=False)

    async def end_audio(self) -> None:
        """Nothing was heard, so there is no turn."""
        self._emit(TurnComplete())

    async def send_text(self, text: str, ran: Sequence[ToolAnswer] = ()) -> None:
        async with self._changing:
            await self._stop()
            context = self._connection()
            if self._late:
                note(self._messages, "", self._late)
                self._late = []
            if text:
                self._messages.append(UserMessage(text))
            if ran:
                note(self._messages, "", ran)
            self._begin = len(self._messages)
            self._turn = asyncio.create_task(self._answer(context))
            self._turn.add_done_callback(self._end_turn)

    async def say(self, text: str) -> None:
        async with self._changing:
            await self._stop()
            self._connection()
            self._begin = len(self._messages)
            note(self._messages, text)
            for event in (OutputText(text), GenerationComplete(), TurnComplete()):
                self._emit(event)

    async def send_tool_results(self, answers: Sequence[ToolAnswer]) -> None:
        for answer in answers:
            if answer.call in self._open:
                self._open.remove(answer.call)
                self._answers.append(answer)
            elif answer not in self._late:
                # Its answer is void, or it had none: a person approved it, or another process called it before.
                if answer.call in self._void:
                    self._void.remove(answer.call)
                self._late.append(answer)
        if not self._open:
            self._answered.set()

    async def interrupt(self, heard: str | None = None) -> None:
        async with self._changing:
            await self._stop()
            if heard is not None:
                forget_unheard(self._messages, self._begin, heard)

    async def close(self) -> None:
        self._closed = True
        self._stirred.set()
        async with self._changing:
            await self._stop()

    def _connection(self) -> LiveContext:
        if self._closed:
            raise ModelError(f"The conversation with {self.profile.name} is closed. Connect a new one.")
        if self._context is None:
            raise ModelError(f"{self.profile.name} is not connected. Connect it before it is used.", retryable=False)
        return self._context

    async def _stop(self) -> None:
        """Ends the answer under way, if there is one. `TurnComplete` is among the events when this is done."""
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.wait([self._turn])

    async def _answer(self, context: LiveContext) -> None:
        """Passes on messages of the model until one has no calls."""
        timer, has_spoken = TurnTimer(self.profile.name), False
        for _ in range(MAX_MESSAGES):
            said, has_calls = await self._pass_on_message(context, timer)
            has_spoken = has_spoken or bool(said.strip())
            if not has_calls:
                break
        else:
            message = f"{self.profile.name} used one tool after another without answering, so I stopped it."
            raise ModelError(message, kind=FailureKind.LOOPED)
        if not has_spoken:
            self._break_silence()

    def _break_silence(self) -> None:
        """The model has nothing to say. What its tools have to say is the answer, if there is anything."""
        spoken = " ".join(_spoken_results(self._messages))
        if not spoken:
            message = f"{self.profile.name} said nothing. Please ask again, or in other words."
            raise ModelError(message, kind=FailureKind.EMPTY)
        note(self._messages, spoken)
        self._emit(OutputText(spoken))

    async def _pass_on_message(self, context: LiveContext, timer: TurnTimer) -> tuple[str, bool]:
        """One message of the model and the results of its calls: what it said, and whether it had calls."""
        pieces, calls = list[str](), list[ToolCall]()
        prompt = Prompt(context.system, tuple(self._messages), context.tools, context.mode)
        try:
            reply = cast(AsyncGenerator[Event, None], self._model.reply(prompt))
            async with timer.running(), aclosing(reply) as events:
                async for event in events:
                    match event:
                        case OutputText(text=delta):
                            pieces.append(delta)
                            self._emit(event)
                        case CallRequested(call=call):
                            calls.append(call)
                        case Usage():
                            self._emit(event)
            if calls:
                await self._ask_for(number(calls))
        finally:
            # Of a message that was cut off or failed, too: what was said was said, and what was done was done.
            said = "".join(pieces)
            if said or self._answers:
                note(self._messages, said, self._answers)
            self._void += self._open
            self._open, self._answers = [], []
        return said, bool(calls)

    async def _ask_for(self, calls: list[ToolCall]) -> None:
        self._open = list(calls)
        self._answered.clear()
        self._emit(ToolCalls(tuple(calls)))
        await self._answered.wait()

    def _end_turn(self, turn: asyncio.Task[None]) -> None:
        """A callback rather than the task's last lines: a task that is cancelled before it began has none."""
        if not turn.cancelled():
            match turn.exception():
                case None:
                    self._health.note_success()
                    self._emit(GenerationComplete())
                case ModelError() as error:
                    self._health.note_failure(error)
                    self._emit(TurnFailed(str(error), error.retryable, error.rate_limited, error.retry_after_s))
                case error:
                    self._health.note_failure(error)
                    self._emit(TurnFailed(f"{self.profile.name} failed unexpectedly. Please try again."))
        self._emit(TurnComplete())

    def _emit(self, event: LiveEvent) -> None:
        self._outbox.append(event)
        self._stirred.set()


def _spoken_results(messages: Sequence[Message]) -> list[str]:
    """What the results of this turn's calls have to say, up to the last words of anybody."""
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
