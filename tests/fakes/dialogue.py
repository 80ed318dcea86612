"""A conversation with the offline assistant: the real tools run, and messages are kept as a session keeps them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from antiphon.authoring.testing import Outbox
from antiphon.clock import SystemClock
from antiphon.compose.services import open_services
from antiphon.config import Settings
from antiphon.models.base import CallRequested, Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Registry
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

Called = tuple[str, Mapping[str, Any]]


@dataclass
class Dialogue:
    """Keeps what was said, and what was called in each turn."""

    model: BuiltinModel
    executor: Executor
    session: ToolSession
    messages: list[Message] = field(default_factory=list)
    called: list[Called] = field(default_factory=list)
    """The calls of the last turn."""

    async def say(self, text: str) -> str:
        """Says something, and returns the answer."""
        self.executor.begin_turn(self.session)
        self.messages.append(UserMessage(text))
        self.called = []
        while True:
            words, calls = await self._reply()
            if not calls:
                self.messages.append(AssistantMessage(words))
                return words
            await self._run(words, calls)

    async def _reply(self) -> tuple[str, list[ToolCall]]:
        prompt = Prompt("", tuple(self.messages), (), self.session.mode)
        events = [event async for event in self.model.reply(prompt)]
        words = "".join(event.text for event in events if isinstance(event, TextDelta))
        return words, [event.call for event in events if isinstance(event, CallRequested)]

    async def _run(self, words: str, calls: list[ToolCall]) -> None:
        made = tuple(CallMade(f"c{len(self.messages)}.{n}", call.name, call.args) for n, call in enumerate(calls))
        self.messages.append(AssistantMessage(words, made))
        for call, made_call in zip(calls, made, strict=True):
            result = await self.executor.execute(call, self.session)
            self.called.append((call.name, call.args))
            self.messages.append(ToolMessage(made_call.id, call.name, result.for_model(), result.spoken, result.ok))


@asynccontextmanager
async def begin(settings: Settings, registry: Registry, model: BuiltinModel, mode: Mode) -> AsyncIterator[Dialogue]:
    """Begins a conversation of somebody who has no lists, reminders or events yet."""
    database = MemoryDatabase()
    async with open_services(settings, database) as services:
        executor = Executor(
            registry,
            calls=database.calls,
            confirmations=database.confirmations,
            audit=database.audit,
            limits=database.limits,
            clock=SystemClock(),
            offers=services.offers,
        )
        session = ToolSession("s1", "ann", executor.registry.snapshot(), mode=mode, messaging=Outbox())
        session.state.voice_active = mode is Mode.VOICE
        yield Dialogue(model, executor, session)
        await executor.aclose()
