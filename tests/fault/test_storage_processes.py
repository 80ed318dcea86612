"""Several processes share one database, and some of them are killed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from antiphon.storage.base import CallRecord
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.sessions import Fence, SessionRecord
from antiphon.storage.sql import Database, open_database

pytestmark = pytest.mark.real_time

CHILD = Path(__file__).with_name("storage_child.py")


@pytest.fixture(params=["sqlite", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the database is: a file, or an address."""
    return tmp_path / "a.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


class Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    async def hear(self) -> str:
        return (await self._stdout.readline()).decode().strip()

    def go(self) -> None:
        self._stdin.write(b"go\n")

    async def hear_all(self) -> list[str]:
        """Everything it prints until it exits, on its own and without an error."""
        words = (await self._stdout.read()).decode().split()
        assert await self._process.wait() == 0
        return words

    async def kill(self) -> None:
        """kill -9: no handler runs, nothing is flushed."""
        if self._process.returncode is None:
            self._process.kill()
        self._stdin.close()
        await self._stdout.read()
        await self._process.wait()


@asynccontextmanager
async def children(database: Path | str, task: str, count: int) -> AsyncIterator[list[Child]]:
    """Starts this many processes, and lets them go at once when all are loaded."""
    pipe = asyncio.subprocess.PIPE
    started = [
        Child(
            await asyncio.create_subprocess_exec(
                sys.executable, CHILD, database, task, f"child{number}", stdin=pipe, stdout=pipe
            )
        )
        for number in range(count)
    ]
    try:
        for child in started:
            assert await child.hear() == "ready"
        for child in started:
            child.go()
        yield started
    finally:
        for child in started:
            await child.kill()


@asynccontextmanager
async def session_of_ann(path: Path | str) -> AsyncIterator[Database]:
    """Begins the session s1 of the conversation c1, in this process."""
    database = await open_database(path)
    try:
        await database.conversations.create(Conversation("c1", "ann", "", 1_000, 1_000))
        await database.sessions.begin(session("s1", "h0"))
        yield database
    finally:
        await database.aclose()


def session(id: str, handle_hash: str) -> SessionRecord:
    return SessionRecord(id, "ann", "c1", "text", "v1", 0, b"{}", handle_hash, 9_000, "test", 1, 5_000, 1_000)


async def test_each_key_is_won_by_exactly_one_of_two_processes(path: Path | str) -> None:
    await (await open_database(path)).aclose()
    async with children(path, "start_200", 2) as racers:
        won = await asyncio.gather(*(racer.hear_all() for racer in racers))
    assert sorted(int(key) for keys in won for key in keys) == list(range(100))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_two_processes_can_open_a_fresh_database_at_once(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    for attempt in range(3):
        path: Path | str = tmp_path / f"{attempt}.db"
        if engine == "postgres":
            path = request.getfixturevalue("postgres").make_database(has_tables=False)
        async with children(path, "open_only", 2) as racers:
            said = await asyncio.gather(*(racer.hear_all() for racer in racers))
        assert said == [["opened"], ["opened"]]


def count_rows(path: Path | str, table: str) -> int:
    """Counts as another program does."""
    address = f"sqlite:///{path}" if isinstance(path, Path) else path.replace("://", "+psycopg://")
    engine = create_engine(address)
    try:
        with engine.connect() as connection:
            return int(connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0)
    finally:
        engine.dispose()


async def test_heavy_writing_from_two_processes_loses_nothing(path: Path | str) -> None:
    async with children(path, "write_much", 2) as writers:
        said = await asyncio.gather(*(writer.hear_all() for writer in writers))
    assert said == [["done"], ["done"]]
    assert count_rows(path, "calls") == 2 * 16 * 25
    assert count_rows(path, "audit") == 2 * 16 * 25 * 3


async def test_every_acknowledged_start_survives_a_kill(path: Path | str) -> None:
    async with children(path, "start_for_ever", 1) as (victim,):
        for number in range(50):
            assert await victim.hear() == str(number)
        await victim.kill()
    database = await open_database(path)
    try:
        found = [await database.calls.find("s1", f"p{number}", None) for number in range(50)]
    finally:
        await database.aclose()
    assert found == [
        CallRecord(f"child0-{number}", "s1", f"p{number}", None, "f", "set_reminder", 1, number, 9)
        for number in range(50)
    ]


async def test_a_call_left_by_a_killed_process_can_be_restarted_by_the_next(path: Path | str) -> None:
    async with children(path, "start_for_ever", 1) as (victim,):
        assert await victim.hear() == "0"
        await victim.kill()
    database = await open_database(path)
    try:
        left = await database.calls.find("s1", "p0", None)
        assert left is not None
        assert left.result is None
        again = CallRecord("b", "s1", "p0", None, "f", "set_reminder", 1, 100, 200)
        assert await database.calls.restart(left, again) is True
    finally:
        await database.aclose()


async def test_a_process_that_lost_the_lease_is_fenced_at_its_next_turn(path: Path | str) -> None:
    async with session_of_ann(path) as database, children(path, "append_when_told", 1) as (earlier,):
        assert await earlier.hear() == "leased"
        earlier.go()
        assert await earlier.hear() == "1"
        taken = await database.sessions.take_lease("s1", "test", 3_000, 7_000)
        earlier.go()
        assert await earlier.hear() == "fenced"
        turn = Turn("user", "By test.", False, 4_000, b"{}")
        assert await database.conversations.append_many("c1", [turn], Fence("s1", taken.lease_token)) == [2]
        assert [each.text for each in await database.conversations.turns("c1")] == ["By child0.", "By test."]


async def test_no_turn_is_written_by_the_old_owner_after_a_takeover(path: Path | str) -> None:
    async with session_of_ann(path) as database, children(path, "append_until_fenced", 1) as (earlier,):
        assert await earlier.hear() == "leased"
        for number in range(1, 30):
            assert await earlier.hear() == str(number)
        await database.sessions.take_lease("s1", "test", 3_000, 7_000)
        seen = [each.seq for each in await database.conversations.turns("c1")]
        rest = await earlier.hear_all()
        assert rest == [*map(str, seen[29:]), "fenced"]
        assert [each.seq for each in await database.conversations.turns("c1")] == seen


async def test_every_acknowledged_turn_survives_a_kill(path: Path | str) -> None:
    async with session_of_ann(path) as database, children(path, "append_until_fenced", 1) as (victim,):
        assert await victim.hear() == "leased"
        for number in range(1, 51):
            assert await victim.hear() == str(number)
        await victim.kill()
        seen = [each.seq for each in await database.conversations.turns("c1")]
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) >= 50


async def test_only_one_of_two_processes_resuming_a_session_has_its_newest_handle(path: Path | str) -> None:
    database = await open_database(path)
    try:
        for number in range(100):
            await database.sessions.begin(session(f"s{number}", f"h{number}"))
    finally:
        await database.aclose()
    async with children(path, "resume_100", 2) as racers:
        got = await asyncio.gather(*(racer.hear_all() for racer in racers))
    everything = [f"s{number}" for number in range(100)]
    assert got == [everything, everything]
    database = await open_database(path)
    try:
        for number in range(100):
            handles = [f"child{place}-{number}" for place in range(2)]
            found = [await database.sessions.rotate(handle, "newest", "ann", 2_000, 9_000) for handle in handles]
            assert [each.id for each in found if each is not None] == [f"s{number}"]
            await database.sessions.end(f"s{number}")
    finally:
        await database.aclose()
