"""What somebody will probably want, in the making."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Generic, TypeVar, cast

from antiphon.models.cascade.chores import Chores, has_failed

Item = TypeVar("Item")


class Begun(Generic[Item]):
    """Its items are kept as they come, and can be read from the first on, by several readers."""

    def __init__(self, source: AsyncIterator[Item], chores: Chores, most: int | None = None) -> None:
        """With `most`, so many are made, and the rest only when it is taken."""
        self._items: list[Item] = []
        self._most = most
        self._is_taken = asyncio.Event()
        self._stirred = asyncio.Event()
        self._making = chores.start(self._make(cast(AsyncGenerator[Item, None], source)))
        self._making.add_done_callback(lambda _: self._stir())

    @property
    def has_failed(self) -> bool:
        return has_failed(self._making)

    def give_up(self) -> None:
        self._making.cancel()

    async def watch(self) -> AsyncIterator[Item]:
        """What is there and what comes. Raises what the source raised, at the place where it did."""
        at = 0
        while True:
            stirred = self._stirred
            while at < len(self._items):
                yield self._items[at]
                at += 1
            if self._making.done():
                self._making.result()
                return
            await stirred.wait()

    async def take(self) -> AsyncIterator[Item]:
        """As `watch`, for whoever wants it now. A reader who leaves gives the rest up."""
        self._is_taken.set()
        try:
            async for item in self.watch():
                yield item
        finally:
            self.give_up()
            await asyncio.wait([self._making])

    async def _make(self, source: AsyncGenerator[Item, None]) -> None:
        async with aclosing(source) as items:
            async for item in items:
                self._items.append(item)
                self._stir()
                if len(self._items) == self._most:
                    await self._is_taken.wait()

    def _stir(self) -> None:
        self._stirred.set()
        self._stirred = asyncio.Event()
