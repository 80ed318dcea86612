"""A conversation with a provider's model, whose server is a simulator."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from antiphon.models.live import LiveEvent, LiveModel, OutputText, ToolAnswer, ToolCalls, TurnComplete

Kind = TypeVar("Kind", bound=LiveEvent)


class ProviderTalk:
    """Reads the events of a model, and answers its calls unless told otherwise."""

    def __init__(self, model: LiveModel) -> None:
        self.model = model
        self.events: list[LiveEvent] = []
        self.answers_calls = True
        self._changed = asyncio.Event()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.model.events():
            self.events.append(event)
            self._changed.set()
            if isinstance(event, ToolCalls) and self.answers_calls:
                self.model.send_tool_results(event.turn, [ToolAnswer(call, {"time": "12:30"}) for call in event.calls])

    async def until(self, kind: type[Kind], accept: Callable[[Kind], bool] = lambda event: True) -> Kind:
        async with asyncio.timeout(20):
            while True:
                for event in self.events:
                    if isinstance(event, kind) and accept(event):
                        return event
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, turn: str, text: str) -> str:
        """Returns the words of the answer."""
        self.model.respond(turn, text)
        await self.until(TurnComplete, lambda event: event.turn == turn)
        return "".join(event.text for event in self.events if isinstance(event, OutputText) and event.turn == turn)
