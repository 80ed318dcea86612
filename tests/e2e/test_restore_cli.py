"""`antiphon data restore`: a backup takes the place of the database, and nothing else does."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from antiphon.storage.migrations import HEAD
from tests.e2e.terminal import Terminal
from tests.e2e.test_admin_cli import database_of, fill, one_line, stores

pytestmark = pytest.mark.real_time


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def settings(unused_tcp_port: int) -> dict[str, str]:
    """The settings of a server that is not running."""
    return {"ANTIPHON_SERVER__PORT": str(unused_tcp_port)}


@pytest.fixture
async def backup(terminal: Terminal) -> Path:
    """A backup of two conversations, after which a third was added."""
    await fill(terminal, conversations=2)
    assert terminal.run("data", "backup", "backup.db").code == 0
    await fill(terminal, user="later", conversations=1)
    return terminal.folder / "backup.db"


async def users(terminal: Terminal) -> dict[str, int]:
    """Returns how many conversations each user has."""
    async with stores(terminal) as database:
        return {user: len(await database.conversations.list(user, 10)) for user in ("local", "later")}


async def test_a_backup_is_restored_into_an_empty_folder(
    terminal: Terminal, backup: Path, settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = Terminal(tmp_path_factory.mktemp("elsewhere"))
    shown = elsewhere.run("data", "restore", str(backup), **settings)
    assert shown.code == 0
    assert f"Restored {database_of(elsewhere)} from {backup} (tables {HEAD})." in shown.out
    assert database_of(elsewhere).stat().st_mode & 0o777 == 0o600
    assert await users(elsewhere) == {"local": 2, "later": 0}


async def test_a_database_is_replaced_only_with_force(
    terminal: Terminal, backup: Path, settings: dict[str, str]
) -> None:
    assert "Back it up with `antiphon data backup`, then replace it with --force." in one_line(
        terminal.run("data", "restore", str(backup), **settings)
    )
    assert await users(terminal) == {"local": 2, "later": 1}
    assert terminal.run("data", "restore", str(backup), "--force", **settings).code == 0
    assert await users(terminal) == {"local": 2, "later": 0}


async def test_a_damaged_database_is_replaced(terminal: Terminal, backup: Path, settings: dict[str, str]) -> None:
    database_of(terminal).write_bytes(b"not a database at all" * 100)
    assert terminal.run("data", "restore", str(backup), "--force", **settings).code == 0
    assert await users(terminal) == {"local": 2, "later": 0}


async def test_a_backup_of_an_older_version_is_migrated_by_the_next_start(
    terminal: Terminal, backup: Path, settings: dict[str, str]
) -> None:
    with closing(sqlite3.connect(backup)) as database, database:
        for undone in (
            *("DROP TABLE images", "DROP TABLE recording_parts", "DROP INDEX sessions_conversation"),
            "ALTER TABLE recordings DROP COLUMN is_stored",
            "UPDATE alembic_version SET version_num = '0013'",
        ):
            database.execute(undone)
    shown = terminal.run("data", "restore", str(backup), "--force", **settings)
    assert "(tables 0013)" in shown.out
    assert await users(terminal) == {"local": 2, "later": 0}
    with closing(sqlite3.connect(database_of(terminal))) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]


async def test_nothing_is_restored_while_a_server_runs(terminal: Terminal, backup: Path) -> None:
    with terminal.serve("--port", "0") as announced:
        port = announced[0].rpartition(":")[2].partition("/")[0]
        shown = terminal.run("data", "restore", str(backup), "--force", ANTIPHON_SERVER__PORT=port)
        assert f"a server is running at http://127.0.0.1:{port}. Stop it first" in one_line(shown)
        # Also if it listens on another port than the settings say.
        shown = terminal.run("data", "restore", str(backup), "--force", ANTIPHON_SERVER__PORT="1")
        assert f"another program uses {database_of(terminal)}" in one_line(shown)
    assert await users(terminal) == {"local": 2, "later": 1}


def write_text(path: Path) -> None:
    path.write_text("tea " * 2_000)


def write_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE tea (leaves)")


def write_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE alembic_version (version_num)")
        database.execute("INSERT INTO alembic_version VALUES ('9999')")


def cut(path: Path) -> None:
    """Writes a database whose last pages are missing."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE alembic_version (version_num)")
        database.execute("INSERT INTO alembic_version VALUES (?)", (HEAD,))
        database.execute("CREATE TABLE tea (leaves)")
        database.executemany("INSERT INTO tea VALUES (?)", [("green" * 100,)] * 1_000)
    path.write_bytes(path.read_bytes()[:-200_000])


@pytest.mark.parametrize(
    ("write", "says"),
    [
        pytest.param(lambda path: None, "there is no file", id="missing"),
        pytest.param(lambda path: path.mkdir(), "there is no file", id="a folder"),
        pytest.param(write_text, "is not a backup of Antiphon: file is not a database", id="text"),
        pytest.param(write_other_database, "is not a backup of Antiphon: no such table", id="another database"),
        pytest.param(write_newer, "was written by a newer Antiphon (tables 9999", id="newer"),
        pytest.param(cut, "malformed", id="cut off"),
    ],
)
async def test_what_is_not_a_usable_backup_is_refused(
    terminal: Terminal, settings: dict[str, str], write: object, says: str
) -> None:
    await fill(terminal)
    assert callable(write)
    write(terminal.folder / "other.db")
    assert says in one_line(terminal.run("data", "restore", "other.db", "--force", **settings))
    assert await users(terminal) == {"local": 2, "later": 0}


async def test_the_database_is_not_restored_from_itself(terminal: Terminal, settings: dict[str, str]) -> None:
    await fill(terminal)
    shown = terminal.run("data", "restore", str(database_of(terminal)), "--force", **settings)
    assert "is the database itself" in one_line(shown)


def test_there_is_nothing_to_restore_into_memory(terminal: Terminal) -> None:
    shown = terminal.run("data", "restore", "backup.db", ANTIPHON_STORAGE__URL="memory")
    assert 'storage.url is "memory"' in one_line(shown)
