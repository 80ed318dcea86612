"""Work that is cut short, that waits, and that fails."""

import asyncio
import sqlite3
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, make_url, select

from antiphon.storage.base import CallRecord, Confirmation, StorageError, StoreUnavailable
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.sql.connections import Connections, insert_into
from antiphon.storage.sql.database import Database, upgrade
from antiphon.storage.sql.sqlite import SqliteWorker
from antiphon.storage.sql.tables import audit

pytestmark = pytest.mark.real_time


def record(number: int, provider_key: str) -> CallRecord:
    return CallRecord(f"id{number}", "s1", provider_key, f"h{number}", "f", "set_reminder", 1, number, 60_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
async def connections(path: Path) -> AsyncIterator[Connections]:
    connections = Connections(SqliteWorker(path), str(path))
    try:
        await upgrade(connections, str(path))
        yield connections
    finally:
        await connections.aclose()


@pytest.fixture
def database(connections: Connections) -> Database:
    return Database(connections)


async def count_lines(connections: Connections) -> int:
    ((count,),) = await connections.fetch(select(func.count()).select_from(audit), {})
    return int(count)


async def test_cancelled_statements_affect_neither_concurrent_nor_later_ones(database: Database) -> None:
    starts = [asyncio.create_task(database.calls.start(record(number, f"p{number // 2}"))) for number in range(60)]
    for position in range(0, 60, 2):
        await asyncio.sleep(0.0005)
        starts[position].cancel()
    answers = await asyncio.gather(*starts, return_exceptions=True)
    for number in range(1, 60, 2):
        holder = await database.calls.find("s1", f"p{number // 2}", None)
        # The cancelled one may have been written before it was cut short: then it is in the way, and said so.
        assert holder == (answers[number] or record(number, f"p{number // 2}"))


async def test_a_statement_cancelled_in_flight_is_still_carried_out(database: Database, path: Path) -> None:
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


async def test_a_batch_is_atomic(connections: Connections) -> None:
    with pytest.raises(StorageError, match="NOT NULL"):
        await connections.change_all(insert(audit), [{"ts_ms": 1, "line": "{}"}, {"ts_ms": 2, "line": None}])
    assert await count_lines(connections) == 0


async def test_a_failed_transaction_is_rolled_back_entirely(connections: Connections) -> None:
    def change_and_fail(connection: Connection) -> None:
        connection.execute(insert(audit), {"ts_ms": 1, "line": "{}"})
        raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        await connections.in_transaction(change_and_fail)
    assert await count_lines(connections) == 0


async def test_cancelled_work_is_completed_before_its_caller_is_cancelled(connections: Connections, path: Path) -> None:
    def append_two(connection: Connection) -> None:
        for ts_ms in (1, 2):
            connection.execute(insert(audit), {"ts_ms": ts_ms, "line": "{}"})

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        cancelled = asyncio.create_task(connections.in_transaction(append_two))
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.sleep(0.05)
        assert not cancelled.done()
        other.execute("COMMIT")
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert await count_lines(connections) == 2


async def test_work_is_done_in_the_order_of_the_requests(connections: Connections) -> None:
    done: list[int] = []
    works = [partial(lambda number, _: done.append(number), number) for number in range(50)]
    await asyncio.gather(*map(connections.autocommit, works))
    assert done == list(range(50))


@pytest.mark.parametrize("mistake", [StopIteration(), KeyboardInterrupt()])
async def test_no_error_leaves_a_caller_waiting(connections: Connections, mistake: BaseException) -> None:
    def fail(connection: Connection) -> None:
        raise mistake

    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        await connections.autocommit(fail)
    assert await count_lines(connections) == 0


async def test_interrupted_turns_are_stored_completely_or_not_at_all(database: Database) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    turn = Turn("user", "Hello.", False, 2, b"{}")
    appends = [asyncio.create_task(database.conversations.append_many("c1", [turn], None)) for _ in range(40)]
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


async def test_a_token_cannot_be_inserted_twice(database: Database) -> None:
    confirmation = Confirmation("t1", "s1", "ann", "open_url", "d", b"{}", None, 0, "text", 1, "Open it?", 300_000)
    await database.confirmations.put(confirmation)
    with pytest.raises(StorageError, match="already has such a row"):
        await database.confirmations.put(confirmation)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_an_insert_can_ignore_conflicts_in_each_dialect(dialect: str) -> None:
    insertion = insert_into(audit, dialect).on_conflict_do_nothing()
    assert "ON CONFLICT DO NOTHING" in str(insertion.compile(dialect=make_url(f"{dialect}://").get_dialect()()))


async def test_a_database_failure_says_where_and_why(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE calls")
    with pytest.raises(StorageError, match=r"a\.db cannot be used: no such table: calls\. Check"):
        await database.calls.find("s1", "p1", None)


@contextmanager
def trouble(kind: str, path: Path) -> Iterator[str]:
    """Makes a statement fail; gives one to be run first on the connection itself."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        match kind:
            case "locked":
                other.execute("BEGIN IMMEDIATE")
                yield "PRAGMA busy_timeout = 20"
            case "full":
                yield "PRAGMA max_page_count = 1"
            case "read-only":
                yield "PRAGMA query_only = ON"
            case _:
                other.execute("DROP TABLE turns")
                yield "SELECT 1"


@pytest.mark.parametrize("kind", ["locked", "full", "read-only", "without its table"])
async def test_an_unusable_database_is_unavailable_and_its_error_contains_no_spoken_words(
    connections: Connections, database: Database, path: Path, kind: str
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    said = "xylophone" * 10_000
    with trouble(kind, path) as first:
        await connections.autocommit(lambda connection: connection.exec_driver_sql(first).close())
        with pytest.raises(StoreUnavailable) as caught:
            await database.conversations.append_many("c1", [Turn("user", said, False, 2, said.encode())], None)
    assert "xylophone" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("turn", [Turn("user", "\ud800", False, 2, b"{}"), Turn("user", "", False, 1 << 64, b"{}")])
async def test_a_value_that_a_database_cannot_hold_is_refused(database: Database, turn: Turn) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    with pytest.raises(StorageError, match=r"a\.db cannot store such a value"):
        await database.conversations.append_many("c1", [turn], None)
    assert await database.conversations.append_many("c1", [Turn("user", "Hello.", False, 2, b"{}")], None) == [1]


async def test_a_full_disk_rolls_back_only_the_current_transaction(connections: Connections) -> None:
    def fill(connection: Connection) -> None:
        for _ in range(100):
            connection.execute(insert(audit), {"ts_ms": 2, "line": "x" * 10_000})

    await connections.change(insert(audit), {"ts_ms": 1, "line": "{}"})
    # No more pages than there are now: SQLite takes the larger number.
    await connections.autocommit(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 1").close())
    with pytest.raises(StorageError, match=r"disk is full.*has room"):
        await connections.in_transaction(fill)
    await connections.change(insert(audit), {"ts_ms": 3, "line": "{}"})
    assert [ts_ms for (ts_ms,) in await connections.fetch(select(audit.c.ts_ms), {})] == [1, 3]


async def test_closing_waits_for_pending_work(connections: Connections, path: Path) -> None:
    lines = [asyncio.create_task(connections.change(insert(audit), {"ts_ms": 1, "line": "{}"})) for _ in range(20)]
    await asyncio.sleep(0)
    await connections.aclose()
    assert await asyncio.gather(*lines) == [1] * 20
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM audit").fetchone() == (20,)


async def test_a_closed_database_raises_an_error_and_can_be_closed_again(database: Database) -> None:
    await database.aclose()
    with pytest.raises(StorageError, match=r"a\.db was closed"):
        await database.calls.find("s1", "p1", None)
    await database.aclose()
