"""Work on Postgres: connections that are lost, servers that are gone or frozen, and what the errors say."""

import asyncio
import socket
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import Connection, func, insert, select, text

from antiphon.storage.base import CallRecord, Confirmation, StorageError, StoreUnavailable
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.sql import open_database, psycopg_connection
from antiphon.storage.sql.connections import Connections, KeyTakenError
from antiphon.storage.sql.database import Database
from antiphon.storage.sql.postgres import PostgresWorker, name_of, parse_url
from antiphon.storage.sql.tables import audit
from tests.fakes.postgres import GUARDED_USER, PostgresServer

pytestmark = pytest.mark.real_time

PID = text("SELECT pg_backend_pid()")


def connect(url: str, connections: int = 8) -> Connections:
    return Connections(PostgresWorker(parse_url(url), name_of(url), connections), name_of(url))


@pytest.fixture
async def connections(postgres_url: str) -> AsyncIterator[Connections]:
    connections = connect(postgres_url)
    try:
        yield connections
    finally:
        await connections.aclose()


@pytest.fixture
def database(connections: Connections) -> Database:
    return Database(connections)


async def pid_of(connections: Connections) -> int:
    ((pid,),) = await connections.fetch(PID, {})
    return int(pid)


async def count_lines(connections: Connections) -> int:
    ((count,),) = await connections.fetch(select(func.count()).select_from(audit), {})
    return int(count)


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def frozen(server: PostgresServer) -> Iterator[None]:
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short time-outs. libpq takes one second for two."""
    monkeypatch.setattr(psycopg_connection, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(psycopg_connection, "SILENCE_S", 0.5)
    monkeypatch.setitem(psycopg_connection.PARAMETERS, "connect_timeout", 2)


async def test_as_much_work_as_there_are_connections_is_done_at_once(postgres_url: str) -> None:
    connections = connect(postgres_url, connections=3)
    together = threading.Barrier(3)
    try:
        waits = (connections.autocommit(lambda connection: together.wait(30)) for _ in range(3))
        assert sorted(await asyncio.gather(*waits)) == [0, 1, 2]
        pids = await asyncio.gather(*(pid_of(connections) for _ in range(20)))
        assert len(set(pids)) <= 3
    finally:
        await connections.aclose()


async def test_work_one_after_the_other_needs_one_connection(connections: Connections) -> None:
    assert len({await pid_of(connections) for _ in range(10)}) == 1


async def test_the_server_knows_who_is_connected(connections: Connections) -> None:
    ((name,),) = await connections.fetch(text("SELECT current_setting('application_name')"), {})
    assert name == "antiphon"


async def test_a_connection_that_was_ended_while_idle_is_replaced_unnoticed(
    connections: Connections, postgres: PostgresServer
) -> None:
    before = await pid_of(connections)
    postgres.execute(f"SELECT pg_terminate_backend({before}, 30000)")
    assert await pid_of(connections) != before


async def test_work_whose_connection_is_ended_fails_and_the_next_gets_a_new_one(connections: Connections) -> None:
    def end_own_connection(connection: Connection) -> None:
        connection.execute(insert(audit), {"ts_ms": 1, "line": "{}"})
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(StoreUnavailable, match=r"terminating connection.*Check that the server runs"):
        await connections.in_transaction(end_own_connection)
    assert await count_lines(connections) == 0


async def test_a_server_that_is_gone_is_unavailable_at_once_and_used_again_when_it_is_back(
    connections: Connections, postgres: PostgresServer
) -> None:
    await pid_of(connections)
    with stopped(postgres):
        began = time.monotonic()
        outcomes = await asyncio.gather(*(pid_of(connections) for _ in range(50)), return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in outcomes)
        assert time.monotonic() - began < 5
        assert "Check that Postgres runs there" in str(outcomes[-1])
    for _ in range(100):
        try:
            await pid_of(connections)
            return
        except StoreUnavailable:
            await asyncio.sleep(0.05)
    pytest.fail("the server is back, and was not used again")


@pytest.mark.usefixtures("impatient")
async def test_a_frozen_server_holds_nobody_for_long(connections: Connections, postgres: PostgresServer) -> None:
    await pid_of(connections)
    with frozen(postgres):
        with pytest.raises(StoreUnavailable, match="the server does not answer"):
            await pid_of(connections)
        with pytest.raises(StoreUnavailable, match="cannot be reached: connection timeout expired"):
            await pid_of(connections)
    await asyncio.sleep(0.6)
    await pid_of(connections)


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_never_answers_does_not_hold_one_caller_after_the_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connections = connect(f"postgresql://ann@127.0.0.1:{silent.getsockname()[1]}/db", connections=2)
        began = time.monotonic()
        outcomes = await asyncio.gather(*(pid_of(connections) for _ in range(40)), return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in outcomes)
        # One after the other, they would take 40 s.
        assert time.monotonic() - began < 15
        await connections.aclose()


@pytest.mark.usefixtures("impatient")
async def test_a_statement_that_takes_too_long_is_ended(connections: Connections) -> None:
    with pytest.raises(StoreUnavailable, match="canceling statement due to statement timeout"):
        await connections.fetch(text("SELECT pg_sleep(60)"), {})
    await pid_of(connections)


async def test_long_work_has_more_time_and_the_work_after_it_has_not(connections: Connections) -> None:
    show = text("SHOW statement_timeout")
    assert await connections.in_transaction(lambda it: it.scalar(show), is_long=True) == "10min"
    assert await connections.autocommit(lambda it: it.scalar(show)) == "5s"


@pytest.mark.usefixtures("impatient")
async def test_a_lock_that_another_program_holds_is_not_waited_for_long(
    connections: Connections, database: Database
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    held, release = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("LOCK TABLE conversations"))
        held.set()
        release.wait(60)

    holding = asyncio.create_task(connections.in_transaction(hold, is_long=True))
    await asyncio.to_thread(held.wait, 60)
    try:
        with pytest.raises(StoreUnavailable, match=r"lock timeout.*no other program keeps the tables locked"):
            await database.conversations.append_many("c1", [Turn("user", "Hello.", False, 2, b"{}")], None)
    finally:
        release.set()
        await holding
    assert await database.conversations.append_many("c1", [Turn("user", "Hello.", False, 2, b"{}")], None) == [1]


@pytest.mark.usefixtures("impatient")
async def test_a_process_that_is_frozen_in_a_transaction_does_not_hold_its_locks(
    connections: Connections, database: Database
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    held, is_over = threading.Event(), threading.Event()

    def freeze(connection: Connection) -> None:
        connection.execute(text("UPDATE conversations SET title = 'by a frozen one'"))
        held.set()
        assert is_over.wait(60)
        connection.execute(PID)

    freezing = asyncio.create_task(connections.in_transaction(freeze))
    await asyncio.to_thread(held.wait, 60)
    for _ in range(20):
        with suppress(StoreUnavailable):
            await database.conversations.append_many("c1", [Turn("user", "Hello.", False, 2, b"{}")], None)
            break
    is_over.set()
    with pytest.raises(StoreUnavailable, match="terminating connection due to idle-in-transaction timeout"):
        await freezing
    assert await database.conversations.get("c1", "ann") == Conversation("c1", "ann", "", 1, 2)


async def test_of_two_that_wait_for_each_other_both_are_done(connections: Connections) -> None:
    await connections.change_all(insert(audit), [{"seq": n, "ts_ms": 0, "line": "{}"} for n in (1, 2)])
    both_began = threading.Barrier(2)
    crossed: set[int] = set()

    def add_to_both(first: int, second: int) -> Callable[[Connection], None]:
        def work(connection: Connection) -> None:
            add = text("UPDATE audit SET ts_ms = ts_ms + 1 WHERE seq = :seq")
            connection.execute(add, {"seq": first})
            if first not in crossed:
                crossed.add(first)
                both_began.wait(30)
            connection.execute(add, {"seq": second})

        return work

    await asyncio.gather(*(connections.in_transaction(add_to_both(*pair)) for pair in ((1, 2), (2, 1))))
    assert [row.ts_ms for row in await connections.fetch(select(audit.c.ts_ms), {})] == [2, 2]


async def test_a_cancelled_caller_waits_for_its_work(connections: Connections) -> None:
    began, go_on = threading.Event(), threading.Event()

    def append(connection: Connection) -> None:
        began.set()
        go_on.wait(30)
        connection.execute(insert(audit), {"ts_ms": 1, "line": "{}"})

    cancelled = asyncio.create_task(connections.in_transaction(append))
    await asyncio.to_thread(began.wait, 30)
    cancelled.cancel()
    await asyncio.sleep(0.05)
    assert not cancelled.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert await count_lines(connections) == 1


async def test_a_failed_transaction_is_rolled_back_entirely(connections: Connections) -> None:
    def change_and_fail(connection: Connection) -> None:
        connection.execute(insert(audit), {"ts_ms": 1, "line": "{}"})
        raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        await connections.in_transaction(change_and_fail)
    assert await count_lines(connections) == 0


async def test_closing_waits_for_pending_work(connections: Connections, postgres_url: str) -> None:
    lines = [asyncio.create_task(connections.change(insert(audit), {"ts_ms": 1, "line": "{}"})) for _ in range(20)]
    await asyncio.sleep(0)
    await connections.aclose()
    assert await asyncio.gather(*lines) == [1] * 20
    with pytest.raises(StorageError, match="was closed"):
        await count_lines(connections)


async def test_an_error_about_a_row_does_not_quote_it(connections: Connections, database: Database) -> None:
    said = "xylophone"
    confirmation = Confirmation(said, "s1", "ann", "t", "d", b"{}", None, 0, "text", 1, "Open it?", 300_000)
    await database.confirmations.put(confirmation)
    with pytest.raises(KeyTakenError, match="already has such a row") as caught:
        await database.confirmations.put(confirmation)
    assert said not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(StorageError, match="null value") as refused:
        await connections.change(insert(audit), {"ts_ms": None, "line": said})
    assert said not in "".join(traceback.format_exception(refused.value))


async def test_nul_characters_are_replaced(database: Database) -> None:
    await database.conversations.create(Conversation("c1", "an\0n", "", 1, 1))
    await database.conversations.append_many("c1", [Turn("user", "a\0b", False, 2, b"a\0b")], None)
    [turn] = await database.conversations.turns("c1")
    assert (turn.text, turn.body) == ("a\ufffdb", b"a\0b")
    assert await database.conversations.get("c1", "an\0n") is not None


@pytest.mark.parametrize("turn", [Turn("user", "\ud800", False, 2, b"{}"), Turn("user", "", False, 1 << 64, b"{}")])
async def test_a_value_that_a_database_cannot_hold_is_refused(database: Database, turn: Turn) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    with pytest.raises(StorageError, match="cannot store such a value"):
        await database.conversations.append_many("c1", [turn], None)
    assert await database.conversations.append_many("c1", [Turn("user", "Hello.", False, 2, b"{}")], None) == [1]


async def test_missing_rights_are_the_operators_to_give(connections: Connections, postgres: PostgresServer) -> None:
    def write(connection: Connection) -> None:
        connection.execute(text("SET LOCAL ROLE pg_monitor"))
        connection.execute(insert(audit), {"ts_ms": 1, "line": "{}"})

    with pytest.raises(StoreUnavailable, match=r"permission denied for .*that its user may write"):
        await connections.in_transaction(write)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("/{name}", "/nowhere"), 'database "nowhere" does not exist.*Create it first'),
        (("{user}@", "nobody@"), 'role "nobody" does not exist.*Create it first'),
        (("{user}@", f"{GUARDED_USER}:hunter2@"), "password authentication failed.*Check the user and the password"),
        (("{user}@", f"{GUARDED_USER}@"), "no password supplied.*PGPASSWORD"),
        (("127.0.0.1", "host.invalid"), "Check that Postgres runs there"),
        (("/{name}", "/{name}?sslmode=require"), "SSL.*Check that"),
        (("/{name}", "/{name}?colour=red"), "parameter that Postgres does not know.*colour"),
        (("/{name}", "/{name}?sslmode=maybe"), "parameter that Postgres does not know.*sslmode"),
    ],
)
async def test_a_database_that_cannot_be_opened_says_why_and_what_to_do(
    postgres: PostgresServer, postgres_url: str, change: tuple[str, str], message: str
) -> None:
    if not postgres.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{GUARDED_USER}'"):
        postgres.execute(f"CREATE ROLE {GUARDED_USER} LOGIN PASSWORD 'right'")
    name = postgres_url.rpartition("/")[2]
    old, new = (part.format(name=name, user="antiphon") for part in change)
    with pytest.raises(StorageError, match=message) as caught:
        await open_database(postgres_url.replace(old, new))
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


async def test_without_psycopg_the_error_says_what_to_install(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "antiphon.storage.sql.psycopg_connection")
    monkeypatch.delattr("antiphon.storage.sql.psycopg_connection")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError, match=r"pip install 'antiphon\[postgres\]'"):
        await open_database(postgres_url)


async def test_servers_that_start_at_the_same_time_make_the_tables_once(postgres: PostgresServer) -> None:
    url = postgres.make_database(has_tables=False)
    databases = await asyncio.gather(*(open_database(url) for _ in range(4)))
    try:
        record = CallRecord("a", "s1", "p1", "h1", "f", "set_reminder", 1, 1_000, 61_000)
        await databases[0].calls.start(record)
        assert await databases[3].calls.find("s1", "p1", "h1") == record
    finally:
        for each in databases:
            await each.aclose()
        postgres.drop_database(url)


async def test_a_database_of_a_newer_version_is_refused(postgres: PostgresServer) -> None:
    url = postgres.make_database()
    postgres.execute("UPDATE alembic_version SET version_num = '0999'", url.rpartition("/")[2])
    with pytest.raises(StorageError, match=r"was written by a newer Antiphon .tables 0999.*Update Antiphon"):
        await open_database(url)
    postgres.drop_database(url)


async def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'")
    with pytest.raises(StorageError, match=r"encoding SQL_ASCII.*createdb --template=template0 --encoding=UTF8"):
        await open_database(postgres.url("latin"))
    postgres.execute("DROP DATABASE latin")
