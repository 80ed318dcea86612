"""What happens on Postgres when two transactions meet. In SQLite they never do, since it has one writer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Connection, text

from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Turn
from antiphon.storage.reminders import Delivery, ReminderRecord
from antiphon.storage.sessions import Fence, Fenced, SessionRecord
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.database import Database
from antiphon.storage.sql.locks import lock
from antiphon.storage.sql.postgres import PostgresWorker, name_of, parse_url

pytestmark = pytest.mark.real_time

SESSION = SessionRecord("s1", "ann", "c1", "text", "", 0, b"{}", "h1", 1_000, "node a", 1, 1_000, 0)
STAND = ReminderRecord("r1", "ann", "reminder", "stand up", 2_000, "Europe/Oslo", '{"days":[0]}', 200)
LINE = AuditLine(1, "s1", "ann", "text", 1, "open_url")
TURN = Turn("user", "Hello.", False, 2, b"{}")


@pytest.fixture
async def connections(postgres_url: str) -> AsyncIterator[Connections]:
    name = name_of(postgres_url)
    connections = Connections(PostgresWorker(parse_url(postgres_url), name), name)
    try:
        yield connections
    finally:
        await connections.aclose()


@pytest.fixture
def database(connections: Connections) -> Database:
    return Database(connections)


@asynccontextmanager
async def held(connections: Connections, work: Callable[[Connection], object]) -> AsyncIterator[None]:
    """A transaction that has done its work, and commits at the end of the block."""
    done, go_on = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        work(connection)
        done.set()
        assert go_on.wait(60)

    holding = asyncio.create_task(connections.in_transaction(hold, is_long=True))
    await asyncio.to_thread(done.wait, 60)
    try:
        yield
    finally:
        go_on.set()
        await holding


async def waits(connections: Connections) -> None:
    """Returns as soon as a transaction waits for another one."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    for _ in range(3_000):
        if await connections.autocommit(lambda connection: connection.scalar(waiting)):
            return
        await asyncio.sleep(0.01)
    pytest.fail("nothing waited")


def run(statement: str) -> Callable[[Connection], object]:
    return lambda connection: connection.execute(text(statement))


async def test_a_session_that_is_resumed_while_it_is_swept_stays(connections: Connections, database: Database) -> None:
    await database.sessions.begin(SESSION)
    async with held(connections, run("UPDATE sessions SET handle_expires_ms = 9000, lease_until_ms = 9000")):
        sweeping = asyncio.create_task(database.sessions.sweep(5_000))
        await waits(connections)
    assert await sweeping == 0
    assert await database.sessions.renew("s1", 1, 9_000)


async def test_a_conversation_with_a_new_turn_is_not_deleted_by_age(
    connections: Connections, database: Database
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    async with held(connections, run("UPDATE conversations SET updated_ms = 9000")):
        deleting = asyncio.create_task(database.conversations.delete_before(5_000))
        await waits(connections)
    assert await deleting == 0


async def test_a_lease_is_not_taken_before_a_write_under_the_old_one_has_ended(
    connections: Connections, database: Database
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    await database.sessions.begin(SESSION)
    async with held(connections, run("SELECT id FROM sessions WHERE id = 's1' AND lease_token = 1 FOR UPDATE")):
        taking = asyncio.create_task(database.sessions.take_lease("s1", "node b", 2_000, 9_000))
        await waits(connections)
    assert (await taking).lease_token == 2
    with pytest.raises(Fenced):
        await database.conversations.append_many("c1", [TURN], Fence("s1", 1))


async def test_a_ring_that_is_being_delivered_is_not_replaced(connections: Connections, database: Database) -> None:
    await database.sessions.begin(SESSION)
    await database.reminders.add(STAND, 10)
    first = await database.reminders.ring(STAND, 5_000, 2_005)
    assert first is not None
    later = ReminderRecord("r1", "ann", "reminder", "stand up", 5_000, "Europe/Oslo", '{"days":[0]}', 200)
    deliver = run(f"INSERT INTO ring_deliveries (ring_id, session_id, at_ms) VALUES ('{first.id}', 's1', 1)")
    async with held(connections, deliver):
        ringing = asyncio.create_task(database.reminders.ring(later, 8_000, 5_005))
        await waits(connections)
    second = await ringing
    assert second is not None
    assert [each.ring.id for each in await database.reminders.open_rings(["ann"], 0)] == [first.id, second.id]


async def test_a_ring_that_is_being_deleted_is_not_delivered(connections: Connections, database: Database) -> None:
    await database.sessions.begin(SESSION)
    await database.reminders.add(STAND, 10)
    ring = await database.reminders.ring(STAND, 5_000, 2_005)
    assert ring is not None
    async with held(connections, run("DELETE FROM rings")):
        delivery = Delivery(ring.id, "s1", 3_000, None)
        delivering = asyncio.create_task(database.reminders.deliver([delivery], Fence("s1", 1), [(1, "Stand up!")]))
        await waits(connections)
    assert await delivering is False
    assert await database.messages.after("s1", 0) == []


async def test_no_line_of_the_audit_appears_before_one_with_a_lower_number(
    connections: Connections, database: Database
) -> None:
    def append_slowly(connection: Connection) -> None:
        lock(connection, "audit")
        connection.execute(text("INSERT INTO audit (ts_ms, line) VALUES (1, '{}')"))

    async with held(connections, append_slowly):
        appending = asyncio.create_task(database.audit.append([LINE]))
        await waits(connections)
        assert await database.audit.read() == []
    await appending
    ((lower,), (higher,)) = await connections.fetch(text("SELECT seq FROM audit ORDER BY seq"), {})
    assert lower < higher


async def test_turns_of_two_sessions_in_one_conversation_get_different_numbers(
    connections: Connections, database: Database
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    async with held(connections, run("UPDATE conversations SET last_seq = last_seq + 1")):
        appending = asyncio.create_task(database.conversations.append_many("c1", [TURN, TURN], None))
        await waits(connections)
    assert await appending == [2, 3]


async def test_a_turn_for_a_conversation_that_is_being_deleted_is_refused(
    connections: Connections, database: Database
) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1, 1))
    async with held(connections, run("DELETE FROM conversations")):
        appending = asyncio.create_task(database.conversations.append_many("c1", [TURN], None))
        await waits(connections)
    with pytest.raises(Exception, match="There is no conversation c1 any more"):
        await appending
