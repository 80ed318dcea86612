"""Opening the database, and what it says when that fails."""

import asyncio
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from antiphon.storage.base import AuditLine, CallRecord, StorageError
from antiphon.storage.overview import AuditFilter
from antiphon.storage.sql import open_database

pytestmark = pytest.mark.real_time

FIRST_TABLES = {"calls", "confirmations", "audit"}
RECORD = CallRecord("a", "s1", "p1", "h1", "f", "set_reminder", 1, 1_000, 61_000)


@contextmanager
def plain(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as another program sees it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_the_folder_and_the_file_are_private_to_the_user(tmp_path: Path) -> None:
    path = tmp_path / "data" / "antiphon.db"
    database = await open_database(path)
    try:
        await database.calls.start(RECORD)
        assert mode(path.parent) == 0o700
        assert files(path.parent) == ["antiphon.db", "antiphon.db-shm", "antiphon.db-wal"]
        assert {mode(path.parent / name) for name in files(path.parent)} == {0o600}
    finally:
        await database.aclose()


async def test_stored_data_survives_reopening(tmp_path: Path) -> None:
    first = await open_database(tmp_path / "a.db")
    await first.calls.start(RECORD)
    await first.aclose()
    second = await open_database(tmp_path / "a.db")
    try:
        assert await second.calls.find("s1", "p1", "h1") == RECORD
    finally:
        await second.aclose()


async def test_a_closed_database_leaves_one_file(tmp_path: Path) -> None:
    database = await open_database(tmp_path / "a.db")
    await database.calls.start(RECORD)
    await database.aclose()
    assert files(tmp_path) == ["a.db"]


async def test_url_characters_in_a_path_have_no_special_meaning(tmp_path: Path) -> None:
    path = tmp_path / "50% of #1?" / "a b.db"
    await (await open_database(path)).aclose()
    assert path.is_file()


async def test_a_database_that_is_up_to_date_opens_without_alembic(tmp_path: Path) -> None:
    await (await open_database(tmp_path / "a.db")).aclose()
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\nfrom antiphon.storage.sql import open_database\n"
        "async def main(): await (await open_database(Path(sys.argv[1]))).aclose()\n"
        "asyncio.run(main())\n"
        "sys.exit('alembic' in sys.modules)"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, tmp_path / "a.db")
    assert await child.wait() == 0


async def test_a_database_of_the_first_version_is_migrated_with_its_data(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first = await open_database(path)
    await first.calls.start(RECORD)
    audited = AuditLine(ts_ms=1, session="s1", user="ann", mode="text", turn=1, tool="get_time")
    await first.audit.append([audited, replace(audited, ts_ms=2, user="bob", outcome="TRANSIENT")])
    await first.aclose()
    with plain(path) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        # A virtual table takes its shadow tables along, so it goes first.
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
            "AND name NOT IN ('calls', 'confirmations', 'audit', 'alembic_version') "
            "ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC"
        ).fetchall()
        for (table,) in tables:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute("ALTER TABLE confirmations DROP COLUMN prepared")
        searched = ("session", "user", "conversation", "tool")
        for index in ("calls_oldest", "audit_oldest", *(f"audit_of_{name}" for name in searched)):
            connection.execute(f"DROP INDEX {index}")
        for name in (*searched, "outcome"):
            connection.execute(f"ALTER TABLE audit DROP COLUMN {name}")
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    second = await open_database(path)
    try:
        assert await second.calls.find("s1", "p1", "h1") == RECORD
        await second.blocks.block("ann", 1_000, "rude")
        assert await second.blocks.blocked_until("ann", 0) == 1_000
        assert [line.ts_ms for _, line in await second.overview.audit(AuditFilter(user="bob"), 9)] == [2]
        found = await second.overview.audit(AuditFilter(outcome="ok", tool="get_time", session="s1"), 9)
        assert [line for _, line in found] == [audited]
    finally:
        await second.aclose()


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await (await open_database(path)).aclose()
    with plain(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(StorageError, match=r"a\.db was written by a newer Antiphon \(tables 0999.*Update Antiphon"):
        await open_database(path)


async def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    with pytest.raises(StorageError, match=r"letter\.txt is not a database"):
        await open_database(path)
    assert path.read_text() == "Dear reader, " * 100


async def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"file/a\.db cannot be opened: .*Choose a path"):
        await open_database(tmp_path / "file" / "a.db")


async def test_a_folder_is_refused_as_a_database(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened: Is a directory"):
        await open_database(tmp_path)


async def test_opening_waits_for_another_program_that_holds_a_new_file(tmp_path: Path) -> None:
    with plain(tmp_path / "a.db") as other:
        other.execute("CREATE TABLE other (x)")
        other.execute("BEGIN IMMEDIATE")
        opening = asyncio.create_task(open_database(tmp_path / "a.db"))
        await asyncio.sleep(0.1)
        assert not opening.done()
        other.execute("COMMIT")
        await (await opening).aclose()


async def test_a_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with plain(path) as connection:
        connection.execute("CREATE TABLE audit (of_another_program)")
    with pytest.raises(StorageError, match="table audit already exists"):
        await open_database(path)
    with plain(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("audit",)]
