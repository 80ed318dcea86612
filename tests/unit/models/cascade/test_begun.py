import asyncio
from collections.abc import AsyncIterator

import pytest

from antiphon.models.base import ModelError
from antiphon.models.cascade.begun import Begun
from antiphon.models.cascade.chores import Chores

STEP_S = 1.0


class Source:
    """Gives numbers, one a second."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self._count = count
        self._error = error
        self.made = 0
        self.is_closed = False

    async def run(self) -> AsyncIterator[int]:
        try:
            while self.made < self._count:
                await asyncio.sleep(STEP_S)
                self.made += 1
                yield self.made
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def read(items: AsyncIterator[int]) -> list[int]:
    return [item async for item in items]


async def test_it_is_made_before_anybody_reads_it() -> None:
    source, chores = Source(3), Chores()
    begun = Begun(source.run(), chores)
    await asyncio.sleep(10)
    assert source.made == 3
    assert await asyncio.wait_for(read(begun.take()), 0.01) == [1, 2, 3]


async def test_several_read_it_from_the_first_on_while_it_comes() -> None:
    begun = Begun(Source(3).run(), Chores())
    await asyncio.sleep(1.5 * STEP_S)
    both = await asyncio.gather(read(begun.watch()), read(begun.watch()))
    assert tuple(both) == ([1, 2, 3], [1, 2, 3])


async def test_only_so_many_are_made_until_it_is_taken() -> None:
    source = Source(3)
    begun = Begun(source.run(), Chores(), most=1)
    await asyncio.sleep(10)
    assert source.made == 1
    assert await read(begun.take()) == [1, 2, 3]
    assert source.is_closed


async def test_a_reader_who_leaves_gives_the_rest_up() -> None:
    source = Source(3)
    items = Begun(source.run(), Chores()).take()
    assert await anext(items) == 1
    await items.aclose()  # type: ignore[attr-defined]
    assert source.is_closed


async def test_an_error_comes_where_it_came() -> None:
    begun = Begun(Source(1, ModelError("no")).run(), Chores())
    items = begun.watch()
    assert await anext(items) == 1
    with pytest.raises(ModelError):
        await anext(items)
    assert begun.has_failed


async def test_what_is_given_up_is_closed() -> None:
    source, chores = Source(3), Chores()
    begun = Begun(source.run(), chores)
    await asyncio.sleep(1.5 * STEP_S)
    begun.give_up()
    await chores.aclose()
    assert source.is_closed
    assert begun.has_failed
