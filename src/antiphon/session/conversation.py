"""A conversation in text: the user's words in, the events of the answer out, every tool call through the gate."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.models.base import CallRequested, OutputText, Prompt, TextModel
from antiphon.models.live import ToolAnswer, note
from antiphon.prompts.composer import compose
from antiphon.tools.call import ToolCall, number
from antiphon.tools.executor import Executor
from antiphon.tools.result import ToolResult
from antiphon.tools.session import ToolSession
from antiphon.transcript import AssistantMessage, Message, UserMessage

MAX_STEPS: Final = 8
"""Model messages in one turn. The gate refuses calls beyond the budget long before; this ends a model that insists."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Returned:
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer; the turn is over."""

    text: str


TurnEvent = Said | Called | Returned | Answered

Run = tuple[ToolCall, ToolResult]


class Conversation:
    """One at a time: a turn ends before the next begins."""

    def __init__(self, model: TextModel, executor: Executor, session: ToolSession) -> None:
        self._model = model
        self._executor = executor
        self._session = session
        self.messages: list[Message] = []

    async def say(self, text: str) -> AsyncIterator[TurnEvent]:
        """A turn of the user, and what comes of it."""
        self._executor.begin_turn(self._session)
        self._tell_unheard()
        self.messages.append(UserMessage(text))
        answered = await self._executor.hear(text, self._session)
        if answered is not None:
            self._note("", [answered])
            yield Returned(*answered)
        answer = ""
        for _ in range(MAX_STEPS):
            said, calls = "", list[ToolCall]()
            async for event in self._model.reply(self._prompt()):
                match event:
                    case OutputText(text=delta):
                        said += delta
                        yield Said(delta)
                    case CallRequested(call=call):
                        calls.append(call)
                        yield Called(call)
            answer += said
            if not calls:
                self.messages.append(AssistantMessage(said))
                break
            runs = await self._run(number(calls))
            self._note(said, runs)
            for run in runs:
                yield Returned(*run)
        yield Answered(answer)

    async def _run(self, calls: list[ToolCall]) -> list[Run]:
        """All calls of a message at once; a cancelled turn cancels those that can be cancelled (`Executor.execute`)."""
        results = await asyncio.gather(*(self._executor.execute(call, self._session) for call in calls))
        return list(zip(calls, results, strict=True))

    def _note(self, said: str, runs: Sequence[Run]) -> None:
        answers = [ToolAnswer(call, result.for_model(), result.spoken, result.ok) for call, result in runs]
        note(self.messages, said, answers)

    def _tell_unheard(self) -> None:
        """Results of actions that went on when an earlier turn was interrupted."""
        if self._session.unheard:
            self._note("", self._session.unheard)
            self._session.unheard.clear()

    def _prompt(self) -> Prompt:
        session, snapshot = self._session, self._session.snapshot
        return Prompt(
            system=compose(session.mode, tools_version=snapshot.version, summaries=snapshot.summaries(session.mode)),
            messages=self.messages,
            tools=snapshot.provider_schemas("openai_chat", session.mode),
            mode=session.mode,
        )
