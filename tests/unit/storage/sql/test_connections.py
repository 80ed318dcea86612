"""Statements that are cut short, that wait, and that fail."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, insert, make_url, select

from antiphon.storage.base import CallRecord, Confirmation, StorageError
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.sql.connections import Connections, insert_into, open_sqlite
from antiphon.storage.sql.database import Database
from antiphon.storage.sql.tables import audit
from antiphon.storage.sql.upgrade import upgrade

pytestmark = pytest.mark.real_time


def record(number: int, provider_key: str) -> CallRecord:
    return CallRecord(f"id{number}", "s1", provider_key, f"h{number}", "f", "set_reminder", 1, number, 60_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
async def connections(path: Path) -> AsyncIterator[Connections]:
    engine = open_sqlite(path)
    await upgrade(engine, str(path))
    connections = Connections(engine, str(path))
    try:
        yield connections
    finally:
        await connections.aclose()


@pytest.fixture
def database(connections: Connections) -> Database:
    return Database(connections)


async def test_cancelled_statements_harm_neither_the_others_nor_the_next(database: Database) -> None:
    starts = [asyncio.create_task(database.calls.start(record(number, f"p{number // 2}"))) for number in range(60)]
    for position in range(0, 60, 2):
        await asyncio.sleep(0.0005)
        starts[position].cancel()
    answers = await asyncio.gather(*starts, return_exceptions=True)
    for number in range(1, 60, 2):
        holder = await database.calls.find("s1", f"p{number // 2}", None)
        # The cancelled one may have been written before it was cut short: then it is in the way, and said so.
        assert holder == (answers[number] or record(number, f"p{number // 2}"))


async def test_a_statement_that_is_cancelled_on_its_way_is_carried_out_all_the_same(
    database: Database, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        cancelled = asyncio.create_task(database.calls.start(record(1, "p1")))
        next_one = asyncio.create_task(database.calls.start(record(2, "p1")))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        other.execute("COMMIT")
        assert await next_one == record(1, "p1")
    assert cancelled.cancelled()


async def test_a_statement_waits_for_another_program_that_writes(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = asyncio.create_task(database.calls.start(record(1, "p1")))
        await asyncio.sleep(0.2)
        assert not start.done()
        other.execute("COMMIT")
        assert await start is None


async def test_a_batch_is_written_whole_or_not_at_all(connections: Connections) -> None:
    with pytest.raises(StorageError, match="NOT NULL"):
        await connections.change_all(insert(audit), [{"ts_ms": 1, "line": "{}"}, {"ts_ms": 2, "line": None}])
    ((count,),) = await connections.fetch(select(func.count()).select_from(audit), {})
    assert count == 0


async def test_what_is_run_together_is_undone_together(connections: Connections) -> None:
    async def change_and_fail() -> None:
        async with connections.together() as connection:
            await connection.execute(insert(audit), {"ts_ms": 1, "line": "{}"})
            raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        await change_and_fail()
    ((count,),) = await connections.fetch(select(func.count()).select_from(audit), {})
    assert count == 0


async def test_turns_that_are_cut_short_are_stored_whole_or_not_at_all(database: Database) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    turn = Turn("user", "Hello.", False, 2, b"{}")
    appends = [asyncio.create_task(database.conversations.append("c1", turn, None)) for _ in range(40)]
    for position in range(0, 40, 2):
        await asyncio.sleep(0.0007)
        appends[position].cancel()
    told = [each for each in await asyncio.gather(*appends, return_exceptions=True) if isinstance(each, int)]
    stored = [each.seq for each in await database.conversations.turns("c1")]
    assert set(told) <= set(stored)
    assert stored == list(range(1, len(stored) + 1))


async def test_statements_commit_by_themselves_after_a_batch(connections: Connections, path: Path) -> None:
    await connections.change_all(insert(audit), [{"ts_ms": 1, "line": "{}"}])
    await connections.change(insert(audit), {"ts_ms": 2, "line": "{}"})
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM audit").fetchone() == (2,)


async def test_a_token_cannot_be_put_twice(database: Database) -> None:
    confirmation = Confirmation("t1", "s1", "ann", "open_url", "d", b"{}", None, 0, "text", 1, "Open it?", 300_000)
    await database.confirmations.put(confirmation)
    with pytest.raises(StorageError, match="already has such a row"):
        await database.confirmations.put(confirmation)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_an_insert_can_give_way_in_each_dialect(dialect: str) -> None:
    insertion = insert_into(audit, dialect).on_conflict_do_nothing()
    assert "ON CONFLICT DO NOTHING" in str(insertion.compile(dialect=make_url(f"{dialect}://").get_dialect()()))


async def test_a_database_that_fails_says_where_and_why(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE calls")
    with pytest.raises(StorageError, match=r"a\.db cannot be used: no such table: calls\. Check"):
        await database.calls.find("s1", "p1", None)
