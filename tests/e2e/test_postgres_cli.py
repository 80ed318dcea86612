"""The commands that work on the whole database, with Postgres."""

import asyncio
import json
from pathlib import Path
from typing import Final

import psycopg
import pytest

from antiphon.storage.images import ImageRecord
from antiphon.storage.recordings import Recording
from antiphon.storage.sql import Database, open_database
from antiphon.storage.sql.copying import copy_database
from tests.e2e.terminal import Terminal
from tests.e2e.test_admin_cli import database_of, fill, one_line
from tests.fakes.image_api import PNG
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.real_time

PICTURE: Final = ImageRecord("B" * 43 + ".png", "local", "a lighthouse", "openai:m", 1, "image/png")


class Interrupted(Exception):
    pass


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def unused(unused_tcp_port: int) -> dict[str, str]:
    """The settings of a server that is not running."""
    return {"ANTIPHON_SERVER__PORT": str(unused_tcp_port)}


@pytest.fixture
def settings(unused: dict[str, str], postgres_url: str) -> dict[str, str]:
    return {"ANTIPHON_STORAGE__URL": postgres_url, **unused}


def postgres_rows(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        [(count,)] = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()
        return int(count)


async def titles(place: Path | str, user: str = "local") -> list[str]:
    database = await open_database(place)
    try:
        return sorted(each.title for each in await database.conversations.list(user, 100))
    finally:
        await database.aclose()


async def add_records(database: Database) -> None:
    """Adds rows of several tables: with numbers, with bytes, and with foreign keys."""
    await database.blocks.block("mallory", 9_999_999_999_999, "rude")
    await database.limits.use({"x": 1000.0})
    await database.images.add(PICTURE, PNG)
    [conversation, *_] = await database.conversations.list("local", 1)
    await database.recordings.add(
        Recording("r1", conversation.id, "local", "v1", 0, 1_000, 2, 10, "opus", "A" * 43 + ".opus", "tower")
    )
    for number, part in enumerate((b"sound", b"-more")):
        await database.recordings.add_part("r1", number, part)
    await database.recordings.mark_stored("r1")


async def test_data_moves_from_sqlite_to_postgres_and_back(
    terminal: Terminal, postgres_url: str, settings: dict[str, str], unused: dict[str, str]
) -> None:
    await fill(terminal, conversations=3)
    moved = terminal.run("data", "migrate", postgres_url, **unused)
    assert moved.code == 0, moved.err
    assert "rows into postgresql://" in moved.out
    assert await titles(postgres_url) == await titles(database_of(terminal))
    database = await open_database(postgres_url)
    await add_records(database)
    await database.aclose()
    back = terminal.run("data", "migrate", f"sqlite:///{terminal.folder}/back.db", **settings)
    assert back.code == 0, back.err
    assert await titles(terminal.folder / "back.db") == await titles(postgres_url)
    # Images and the sound of recordings come along, and are exported as files.
    variables = {"ANTIPHON_STORAGE__URL": f"sqlite:///{terminal.folder}/back.db", **unused}
    exported = terminal.run("data", "export", "--files", "files", **variables)
    assert exported.code == 0, exported.err
    lines = {line["kind"]: line for line in map(json.loads, exported.out.splitlines())}
    contents = [(terminal.folder / lines[kind]["file"]).read_bytes() for kind in ("image", "recording")]
    assert contents == [PNG, b"sound-more"]
    deleted = terminal.run("data", "delete", "--user", "local", "--yes", **settings)
    assert "1 recording and 1 image" in deleted.out
    assert postgres_rows(postgres_url, "images") == postgres_rows(postgres_url, "recording_parts") == 0


async def test_an_interrupted_copy_is_refused_by_a_server_and_goes_on(
    terminal: Terminal, postgres: PostgresServer, unused: dict[str, str]
) -> None:
    await fill(terminal, conversations=3)
    source, url = database_of(terminal), postgres.make_database()

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        await asyncio.to_thread(copy_database, source, url, interrupt)
    refused = terminal.run("token", "list", ANTIPHON_STORAGE__URL=url)
    assert "Run `antiphon data migrate` again to go on." in one_line(refused)
    moved = terminal.run("data", "migrate", url, **unused)
    assert moved.code == 0, moved.err
    assert await titles(url) == await titles(source)
    postgres.drop_database(url)


async def test_a_database_with_data_is_not_filled(
    terminal: Terminal, postgres_url: str, settings: dict[str, str], unused: dict[str, str]
) -> None:
    await fill(terminal, conversations=1)
    assert terminal.run("token", "new", **settings).code == 0
    refused = terminal.run("data", "migrate", postgres_url, **unused)
    assert "It has data already, such as tokens. Use an empty database." in one_line(refused)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mysql://host/name", "is not a database"),
        ("memory", "is not a database"),
        ("postgresql://nobody:secret@127.0.0.1:1/name", "cannot be reached"),
    ],
)
async def test_a_database_that_cannot_be_used_is_a_clear_error(
    terminal: Terminal, unused: dict[str, str], target: str, said: str
) -> None:
    await fill(terminal, conversations=1)
    shown = terminal.run("data", "migrate", target, **unused)
    assert said in one_line(shown)
    assert "secret" not in shown.err


async def test_nothing_is_copied_while_a_server_uses_the_database(
    terminal: Terminal, postgres_url: str, settings: dict[str, str]
) -> None:
    database = await open_database(postgres_url)
    try:
        await database.tokens.list()
        shown = terminal.run("data", "migrate", "sqlite:///copy.db", **settings)
        assert "Stop them first." in one_line(shown)
        assert not (terminal.folder / "copy.db").exists()
    finally:
        await database.aclose()


async def test_postgres_is_backed_up_into_a_file_and_restored_from_it(
    terminal: Terminal, postgres_url: str, settings: dict[str, str], unused: dict[str, str]
) -> None:
    await fill(terminal, conversations=2)
    assert terminal.run("data", "migrate", postgres_url, **unused).code == 0
    before = await titles(postgres_url)
    made = terminal.run("data", "backup", "backup.db", **settings)
    assert made.code == 0, made.err
    assert (terminal.folder / "backup.db").stat().st_mode & 0o777 == 0o600
    assert terminal.run("data", "delete", "--user", "local", "--yes", **settings).code == 0
    assert terminal.run("token", "new", **settings).code == 0
    assert await titles(postgres_url) == []
    refused = terminal.run("data", "restore", "backup.db", **settings)
    assert "has data already" in one_line(refused)
    restored = terminal.run("data", "restore", "backup.db", "--force", **settings)
    assert restored.code == 0, restored.err
    assert await titles(postgres_url) == before
    assert sorted(path.name for path in terminal.folder.iterdir() if "backup" in path.name) == ["backup.db"]


async def test_a_backup_of_a_database_that_is_gone_leaves_no_file(terminal: Terminal) -> None:
    shown = terminal.run("data", "backup", "backup.db", ANTIPHON_STORAGE__URL="postgresql://127.0.0.1:1/name")
    assert "cannot be reached" in one_line(shown)
    assert not list(terminal.folder.glob("*backup*"))


def test_doctor_checks_the_database(terminal: Terminal, settings: dict[str, str]) -> None:
    shown = terminal.run("doctor", **settings)
    assert "(Postgres 1" in shown.out
    assert "ms away)" in shown.out
    gone = terminal.run("doctor", ANTIPHON_STORAGE__URL="postgresql://ann:secret@127.0.0.1:1/name")
    assert gone.code == 1
    assert "cannot be reached" in gone.out
    assert "secret" not in gone.out + gone.err


def test_kb_reindex_makes_the_index_of_pgvector_and_doctor_tells_whether_it_is_used(
    terminal: Terminal, unused: dict[str, str], postgres_with_pgvector: PostgresServer, models_dir: Path
) -> None:
    url = postgres_with_pgvector.make_database()
    settings = {"ANTIPHON_STORAGE__URL": url, "ANTIPHON_MODELS_DIR": str(models_dir), **unused}
    (terminal.folder / "wifi.md").write_text("# Guest wifi\n\nThe password is on the fridge.\n")
    assert terminal.run("kb", "add", "wifi.md", **settings).code == 0
    assert "is not used, so each server keeps the vectors" in terminal.run("doctor", **settings).out
    indexed = terminal.run("kb", "reindex", **settings)
    assert (indexed.code, indexed.out.splitlines()[-1]) == (0, "Postgres searches them with pgvector."), indexed.err
    assert "searches the vectors of the knowledge base" in terminal.run("doctor", **settings).out
    found = terminal.run("kb", "search", "how do visitors log in to the wireless network?", **settings)
    assert "Guest wifi" in found.out
    assert "Only words" not in found.err
