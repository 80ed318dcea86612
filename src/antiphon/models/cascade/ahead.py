"""A text model that can be asked ahead of time: the answer to what will probably be said is on its way already."""

import asyncio
from collections.abc import AsyncIterator

from antiphon.models.base import Event, Prompt, TextModel


class _Begun:
    """An answer in the making, kept until somebody wants it."""

    def __init__(self, model: TextModel, prompt: Prompt) -> None:
        self.prompt = prompt
        self._events: list[Event] = []
        self._stirred = asyncio.Event()
        self._task = asyncio.create_task(self._make(model))
        self._task.add_done_callback(lambda _: self._stirred.set())

    async def _make(self, model: TextModel) -> None:
        async for event in model.reply(self.prompt):
            self._events.append(event)
            self._stirred.set()

    async def read(self) -> AsyncIterator[Event]:
        try:
            while True:
                while self._events:
                    yield self._events.pop(0)
                if self._task.done():
                    self._task.result()
                    return
                self._stirred.clear()
                await self._stirred.wait()
        finally:
            await self.give_up()

    async def give_up(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()


class Ahead:
    """Nothing comes of an answer that was begun ahead until the same prompt is given in earnest: its calls have not
    run, its words were not said."""

    def __init__(self, model: TextModel) -> None:
        self.profile = model.profile
        self._model = model
        self._begun: _Begun | None = None

    async def prepare(self, prompt: Prompt) -> None:
        if self._begun is None or self._begun.prompt != prompt:
            await self.drop()
            self._begun = _Begun(self._model, prompt)

    async def drop(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            await begun.give_up()

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        begun = self._begun
        if begun is not None and begun.prompt == prompt:
            self._begun = None
            source = begun.read()
        else:
            await self.drop()
            source = self._model.reply(prompt)
        async for event in source:
            yield event
