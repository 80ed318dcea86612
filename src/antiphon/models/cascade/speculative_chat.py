"""The text model of a cascade. It can begin an answer before the user's turn is known to be over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from antiphon.models.background import BufferedStream
from antiphon.models.base import CallRequested, Completion, Event, Prompt, TextDelta, TextModel
from antiphon.models.live import LiveEvent, Prefetch, messages_of
from antiphon.models.text_chat import TextChat, check_completion, make_prompt, step_key
from antiphon.speech.clauses import Clauses
from antiphon.tools.call import ToolCall, number


@dataclass(eq=False, slots=True)
class _Speculation:
    """A prepared answer to what the user has probably said. It is not emitted, and its calls are not made."""

    prompt: Prompt
    messages: list[tuple[Prompt, BufferedStream[Event]]] = field(default_factory=list)
    """The model's messages that have not been asked for yet, each with its prompt."""
    task: "asyncio.Task[None] | None" = None

    def take(self, prompt: Prompt) -> BufferedStream[Event] | None:
        found = next((each for each in self.messages if each[0] == prompt), None)
        if found is None:
            return None
        self.messages.remove(found)
        return found[1]

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()
        for _, stream in self.messages:
            stream.cancel()


class SpeculativeChat(TextChat):
    """A prepared answer is used if the prompt turns out to be the same, and dropped otherwise."""

    def __init__(
        self,
        model: TextModel,
        emit: Callable[[LiveEvent], None],
        on_first_clause: Callable[[str], None] = lambda clause: None,
        *,
        may_prepare: Callable[[Prompt], bool] = lambda prompt: True,
    ) -> None:
        """`on_first_clause` is called with the first clause of a prepared answer, as soon as that is known.
        `may_prepare` decides for which prompts the model is asked, perhaps in vain."""
        super().__init__(model, emit)
        self._may_prepare = may_prepare
        self._on_first_clause = on_first_clause
        self._speculation: _Speculation | None = None

    def prepare(self, turn: str, text: str, completion: Completion | None = None) -> None:
        """Begins to answer the turn as if these were the user's words. `completion` is as in `respond`."""
        context = self.check_open()
        messages = context.transcript.with_user(turn, text)
        prompt = make_prompt(context, messages, check_completion(completion, messages))
        if self._speculation is None or self._speculation.prompt != prompt:
            self.drop()
            if not self._may_prepare(prompt):
                return
            speculation = self._speculation = _Speculation(prompt)
            speculation.task = self._tasks.start(self._speculate(speculation, context.prefetch))

    def drop(self) -> None:
        """Drops the prepared answer, because the user has said more."""
        if self._speculation is not None:
            self._speculation.cancel()
            self._speculation = None

    def _reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        prepared = None if self._speculation is None else self._speculation.take(prompt)
        if prepared is not None:
            return prepared.take()
        self.drop()
        return super()._reply(prompt)

    async def _speculate(self, speculation: _Speculation, prefetch: Prefetch | None) -> None:
        """Prepares one message of the model and, if it has calls whose results can be known in advance, the next."""
        prompt = speculation.prompt
        said, calls = await self._prepare_message(speculation, prompt, is_first=True)
        if not calls or prefetch is None:
            return
        answers = await prefetch(number(calls))
        if answers is not None:
            messages = (*prompt.messages, *messages_of(said, answers, key=step_key(0)))
            following = replace(prompt, messages=messages)
            if self._may_prepare(following):
                await self._prepare_message(speculation, following, is_first=not said)

    async def _prepare_message(
        self, speculation: _Speculation, prompt: Prompt, *, is_first: bool
    ) -> tuple[str, list[ToolCall]]:
        """Returns the message's words and its calls. `is_first`: no words come before it."""
        stream = BufferedStream(self._model.reply(prompt), self._tasks)
        speculation.messages.append((prompt, stream))
        said, calls, clauses = "", list[ToolCall](), Clauses()
        async for event in stream.watch():
            match event:
                case TextDelta(text=text):
                    is_first = is_first and not self._tell_first(clauses.push(text))
                    said += text
                case CallRequested(call=call):
                    calls.append(call)
        if is_first:
            self._tell_first(clauses.finish())
        return said, calls

    def _tell_first(self, clauses: list[str]) -> bool:
        if clauses:
            self._on_first_clause(clauses[0])
        return bool(clauses)
