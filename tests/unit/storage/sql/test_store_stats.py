"""Units of work in the database are measured."""

from pathlib import Path

import pytest
from sqlalchemy import text

from antiphon.storage.base import StorageError
from antiphon.storage.sql import open_database
from antiphon.storage.sql.connections import Connections, KeyTakenError
from antiphon.storage.sql.sqlite import SqliteWorker

pytestmark = pytest.mark.real_time


async def test_statements_and_transactions_are_timed(tmp_path: Path) -> None:
    database = await open_database(tmp_path / "data.db")
    before = sum(database.stats.durations.all["statement",].buckets)
    await database.check()
    assert sum(database.stats.durations.all["statement",].buckets) == before + 1
    assert ("transaction",) in database.stats.durations.all
    await database.aclose()


async def test_a_failed_statement_is_counted_and_a_taken_key_is_not(tmp_path: Path) -> None:
    connections = Connections(SqliteWorker(tmp_path / "data.db"), "data.db")
    await connections.change(text("CREATE TABLE cups (id INTEGER PRIMARY KEY)"), {})
    await connections.change(text("INSERT INTO cups VALUES (1)"), {})
    with pytest.raises(KeyTakenError):
        await connections.change(text("INSERT INTO cups VALUES (1)"), {})
    assert connections.stats.errors.total() == 0
    with pytest.raises(StorageError):
        await connections.change(text("INSERT INTO saucers VALUES (1)"), {})
    assert connections.stats.errors.total() == 1
    await connections.aclose()
