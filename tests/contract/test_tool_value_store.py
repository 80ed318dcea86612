"""The contract of the store of what tools keep: values by tool, user and key, at most so many."""

import asyncio

import pytest

from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database
from antiphon.storage.tool_values import ToolStorageFull, ToolValue, ToolValueStore

pytestmark = pytest.mark.real_time


@pytest.fixture
def values(database: MemoryDatabase | Database) -> ToolValueStore:
    return database.tool_values


def value(key: str, *, tool: str = "kettle", user: str = "ann", content: bytes = b"1") -> ToolValue:
    return ToolValue(tool, user, key, content, 1_000)


async def put(values: ToolValueStore, *several: ToolValue, max_keys: int = 100) -> None:
    for each in several:
        await values.put(each, max_keys=max_keys)


async def test_a_value_is_read_as_it_was_stored(values: ToolValueStore) -> None:
    await put(values, value("a", content='{"ü": [1, null]}'.encode()))
    assert await values.get("kettle", "ann", "a") == '{"ü": [1, null]}'.encode()


async def test_an_unknown_key_has_no_value(values: ToolValueStore) -> None:
    assert await values.get("kettle", "ann", "a") is None


async def test_a_new_value_replaces_the_old_one(values: ToolValueStore) -> None:
    await put(values, value("a"), value("a", content=b"2"))
    assert await values.get("kettle", "ann", "a") == b"2"
    assert list(await values.keys("kettle", "ann")) == ["a"]


async def test_tools_and_users_are_separate(values: ToolValueStore) -> None:
    await put(values, value("a"), value("a", tool="lamp", content=b"2"), value("a", user="bob", content=b"3"))
    assert await values.get("kettle", "ann", "a") == b"1"
    assert await values.get("lamp", "ann", "a") == b"2"
    assert await values.get("kettle", "bob", "a") == b"3"
    assert await values.delete("kettle", "bob", "a") is True
    assert await values.get("kettle", "ann", "a") == b"1"


async def test_of_concurrent_deletions_one_gets_true(values: ToolValueStore) -> None:
    await put(values, value("a"))
    deleted = await asyncio.gather(*(values.delete("kettle", "ann", "a") for _ in range(10)))
    assert sorted(deleted) == [False] * 9 + [True]


async def test_keys_are_listed_by_prefix_and_sorted(values: ToolValueStore) -> None:
    await put(values, *(value(key) for key in ("b", "a_2", "a%1", "A", "a")))
    assert list(await values.keys("kettle", "ann")) == ["A", "a", "a%1", "a_2", "b"]
    assert list(await values.keys("kettle", "ann", "a_")) == ["a_2"]
    assert list(await values.keys("kettle", "ann", "a%")) == ["a%1"]


async def test_a_new_key_beyond_the_limit_is_refused_and_an_old_one_can_be_replaced(values: ToolValueStore) -> None:
    await put(values, value("a"), value("b"), max_keys=2)
    with pytest.raises(ToolStorageFull):
        await put(values, value("c"), max_keys=2)
    await put(values, value("a", content=b"2"), max_keys=2)
    assert list(await values.keys("kettle", "ann")) == ["a", "b"]
    assert await values.get("kettle", "ann", "a") == b"2"


async def test_concurrent_puts_do_not_exceed_the_limit(values: ToolValueStore) -> None:
    puts = (values.put(value(f"key {number}"), max_keys=5) for number in range(20))
    done = await asyncio.gather(*puts, return_exceptions=True)
    assert sum(isinstance(outcome, ToolStorageFull) for outcome in done) == 15
    assert len(await values.keys("kettle", "ann")) == 5


async def test_all_values_of_a_user_are_listed_by_tool_and_key(values: ToolValueStore) -> None:
    await put(values, value("b", tool="lamp"), value("a", tool="lamp"), value("z"), value("a", user="bob"))
    assert list(await values.list("ann")) == [value("z"), value("a", tool="lamp"), value("b", tool="lamp")]


async def test_clearing_deletes_the_values_of_one_user(values: ToolValueStore) -> None:
    await put(values, value("a"), value("a", tool="lamp"), value("a", user="bob"))
    assert await values.clear("ann") == 2
    assert list(await values.list("ann")) == []
    assert len(await values.list("bob")) == 1
