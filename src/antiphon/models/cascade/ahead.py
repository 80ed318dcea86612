"""A text model that can be asked ahead of time: the answer to what will probably be said is on its way already."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from antiphon.models.base import Event, Prompt, TextModel
from antiphon.models.cascade.chores import Chores


class _Begun:
    """An answer in the making, kept until somebody wants it."""

    def __init__(self, prompt: Prompt, model: TextModel, chores: Chores) -> None:
        self.prompt = prompt
        self._events: deque[Event] = deque()
        self._stirred = asyncio.Event()
        self._making = chores.start(self._make(model))
        self._making.add_done_callback(lambda _: self._stirred.set())

    def give_up(self) -> None:
        self._making.cancel()

    async def read(self) -> AsyncIterator[Event]:
        """Raises what the model raised, at the place where it did."""
        try:
            while True:
                while self._events:
                    yield self._events.popleft()
                if self._making.done():
                    self._making.result()
                    return
                self._stirred.clear()
                await self._stirred.wait()
        finally:
            self.give_up()
            await asyncio.wait([self._making])

    async def _make(self, model: TextModel) -> None:
        async for event in model.reply(self.prompt):
            self._events.append(event)
            self._stirred.set()


class Ahead:
    """Nothing comes of an answer that was begun ahead until the same prompt is given in earnest: its calls have not
    run, its words were not said."""

    def __init__(self, model: TextModel) -> None:
        self.profile = model.profile
        self._model = model
        self._begun: _Begun | None = None
        self._chores = Chores()

    def prepare(self, prompt: Prompt) -> None:
        if self._begun is None or self._begun.prompt != prompt:
            self.drop()
            self._begun = _Begun(prompt, self._model, self._chores)

    def drop(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.give_up()

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        begun = self._begun
        if begun is not None and begun.prompt == prompt:
            self._begun = None
            source = begun.read()
        else:
            self.drop()
            source = self._model.reply(prompt)
        async with aclosing(cast(AsyncGenerator[Event, None], source)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        self._begun = None
        await self._chores.aclose()
