"""The store of commands for sessions in other processes."""

import asyncio
from typing import Final

import pytest

from antiphon.storage.base import StorageError
from antiphon.storage.commands import SessionCommand
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

NOW_MS: Final = 1_000_000


def command(id: str, session: str = "s1", expires_ms: int = NOW_MS + 1) -> SessionCommand:
    return SessionCommand(id, session, "say", b'{"text":"Hi"}', expires_ms)


async def test_a_command_is_taken_once_and_in_order(database: MemoryDatabase | Database) -> None:
    store = database.commands
    for each in (command("c2"), command("c1"), command("c3", "elsewhere")):
        await store.put(each)
    assert await store.take(["s1", "s2"], NOW_MS) == [command("c2"), command("c1")]
    assert await store.take(["s1", "s2"], NOW_MS) == []
    assert await store.take([], NOW_MS) == []
    assert await store.take(["elsewhere"], NOW_MS) == [command("c3", "elsewhere")]


async def test_one_of_many_takes_a_command(database: MemoryDatabase | Database) -> None:
    store = database.commands
    for number in range(20):
        await store.put(command(f"c{number}"))
    taken = await asyncio.gather(*(store.take(["s1"], NOW_MS) for _ in range(8)))
    assert sorted(each.id for some in taken for each in some) == sorted(f"c{number}" for number in range(20))


async def test_an_expired_command_is_not_taken(database: MemoryDatabase | Database) -> None:
    store = database.commands
    await store.put(command("c1", expires_ms=NOW_MS))
    assert await store.take(["s1"], NOW_MS) == []
    assert await store.sweep(NOW_MS) == 0
    assert await store.sweep(NOW_MS + 1) == 1


async def test_a_result_is_found_until_the_command_is_removed(database: MemoryDatabase | Database) -> None:
    store = database.commands
    await store.put(command("c1"))
    await store.put(command("c2"))
    await store.take(["s1"], NOW_MS)
    assert await store.results(["c1", "c2"]) == {}
    await store.finish("c1", b"done")
    assert await store.results(["c1", "c2", "unknown"]) == {"c1": b"done"}
    assert await store.remove("c1") is False
    assert await store.results(["c1"]) == {}
    await store.finish("c1", b"late")
    assert await store.results(["c1"]) == {}


async def test_a_command_that_nobody_has_taken_can_be_withdrawn(database: MemoryDatabase | Database) -> None:
    store = database.commands
    await store.put(command("c1"))
    assert await store.remove("c1") is True
    assert await store.remove("c1") is False
    assert await store.take(["s1"], NOW_MS) == []


async def test_an_id_is_used_once(database: MemoryDatabase | Database) -> None:
    await database.commands.put(command("c1"))
    with pytest.raises(StorageError):
        await database.commands.put(command("c1"))
