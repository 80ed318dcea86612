"""A text model at the pace of a network, and a live model's events as a session would read them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from antiphon.models.base import Event, OutputText, Prompt, TextModel, TextProfile
from antiphon.models.live import LiveContext, LiveEvent, LiveModel, ToolAnswer, ToolCalls
from antiphon.tools.spec import Mode
from antiphon.transcript import Message

PACE_S: Final = 0.1
LONG_S: Final = 60.0
"""Longer than any answer of a fake takes."""


class Paced:
    """Another model, slowly. It keeps the prompts, and knows how many replies are not closed."""

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self.prompts: list[Prompt] = []
        self.open = 0

    @property
    def profile(self) -> TextProfile:
        return self._model.profile

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        self.prompts.append(prompt)
        self.open += 1
        try:
            async for event in self._model.reply(prompt):
                await asyncio.sleep(PACE_S)
                yield event
        finally:
            self.open -= 1


class Listener:
    """Reads the events of a model all the time, as a session does."""

    def __init__(self, model: LiveModel) -> None:
        self.model = model
        self.events: list[LiveEvent] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.model.events():
            self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, OutputText)).strip()

    @property
    def kinds(self) -> list[type[LiveEvent]]:
        """In their order, the pieces of a text as one."""
        kinds = [type(event) for event in self.events]
        return [kind for place, kind in enumerate(kinds) if kinds[place - 1 : place] != [kind]]

    @property
    def calls(self) -> ToolCalls:
        """The last that were made."""
        return next(event for event in reversed(self.events) if isinstance(event, ToolCalls))

    async def settle(self) -> None:
        """Until nothing more comes by itself."""
        await asyncio.sleep(LONG_S)

    async def ask(self, text: str) -> None:
        await self.model.send_text(text)
        await self.settle()

    async def give_results(self) -> None:
        await self.model.send_tool_results(results_of(self.calls))
        await self.settle()


@asynccontextmanager
async def listening(model: LiveModel, *history: Message) -> AsyncIterator[Listener]:
    """A connection; it is closed at the end, and so is the reading, by the model."""
    await model.connect(LiveContext("You are a helpful assistant.", history, (), Mode.TEXT))
    listener = Listener(model)
    try:
        yield listener
    finally:
        await model.close()
        await listener.reading


def results_of(calls: ToolCalls, content: object = "noon") -> list[ToolAnswer]:
    return [ToolAnswer(call, content, f"It's {content}.") for call in calls.calls]
