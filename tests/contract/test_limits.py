"""The store of what users and addresses have used of their limits."""

import asyncio

import pytest

from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


async def test_at_most_so_many_calls_are_admitted_however_many_ask(database: MemoryDatabase | Database) -> None:
    waits = await asyncio.gather(*(database.limits.admit("ann", "send_mail", calls=5, window_s=600) for _ in range(20)))
    assert waits.count(0) == 5
    assert all(0 < wait_s <= 600 for wait_s in waits if wait_s)


async def test_users_and_tools_have_limits_of_their_own(database: MemoryDatabase | Database) -> None:
    pairs = [("ann", "a"), ("ann", "b"), ("bob", "a")]
    assert [await database.limits.admit(*pair, calls=1, window_s=600) for pair in pairs] == [0, 0, 0]
    assert all([await database.limits.admit(*pair, calls=1, window_s=600) for pair in pairs])


async def test_calls_outside_the_window_do_not_count(database: MemoryDatabase | Database) -> None:
    assert await database.limits.admit("ann", "a", calls=1, window_s=0.2) == 0
    await asyncio.sleep(0.3)
    assert await database.limits.admit("ann", "a", calls=1, window_s=0.2) == 0


async def test_what_several_processes_use_adds_up(database: MemoryDatabase | Database) -> None:
    limits = database.limits
    assert await limits.use({}) == {}
    await asyncio.gather(*(limits.use({"b": 10.0, "a": 5.0}) for _ in range(10)))
    left_s = await limits.use({"a": 0.0, "b": 0.0, "c": 1.0})
    assert left_s == {"a": pytest.approx(50, abs=10), "b": pytest.approx(100, abs=10), "c": pytest.approx(1, abs=0.1)}


async def test_an_empty_bucket_fills_up(database: MemoryDatabase | Database) -> None:
    await database.limits.use({"a": 0.1})
    await asyncio.sleep(0.2)
    assert await database.limits.use({"a": 1.0}) == {"a": pytest.approx(1, abs=0.05)}


async def test_only_what_limits_nobody_is_swept(database: MemoryDatabase | Database) -> None:
    limits = database.limits
    await limits.use({"full": 0.01, "used": 600.0})
    await limits.admit("ann", "old", calls=1, window_s=0.01)
    await limits.admit("ann", "new", calls=1, window_s=600)
    await asyncio.sleep(0.1)
    assert await limits.sweep() == 2
    assert (await limits.use({"used": 0.0}))["used"] > 500
    assert await limits.admit("ann", "new", calls=1, window_s=600) > 500
