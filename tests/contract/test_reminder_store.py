"""The store of reminders and rings, over every backend."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.reminders import Delivery, OpenRing, ReminderRecord, ReminderStore, Ring
from antiphon.storage.sessions import Fence, Fenced, SessionRecord
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

CALL = ReminderRecord("r1", "ann", "reminder", "call my mother", 1_000, "Europe/Oslo", None, 100)
STAND = ReminderRecord("r2", "ann", "reminder", "stand up", 2_000, "Europe/Oslo", '{"days":[0]}', 200)
FENCE = Fence("s1", 1)


@pytest.fixture
def reminders(database: MemoryDatabase | Database) -> ReminderStore:
    return database.reminders


@pytest.fixture
async def session(database: MemoryDatabase | Database) -> Fence:
    await database.sessions.begin(session_record("s1"))
    return FENCE


def session_record(id: str) -> SessionRecord:
    return SessionRecord(
        id=id,
        user="ann",
        conversation_id="c1",
        mode="text",
        tools_version="",
        turn=0,
        state=b"{}",
        handle_hash=f"hash of {id}",
        handle_expires_ms=10_000,
        lease_owner="one",
        lease_token=1,
        lease_until_ms=10_000,
        updated_ms=0,
    )


async def rung(store: ReminderStore, record: ReminderRecord = CALL, now_ms: int = 1_005) -> Ring:
    await store.add(record, 100)
    ring = await store.ring(record, None, now_ms)
    assert ring is not None
    return ring


def told(ring: Ring, session_id: str = "s1") -> Delivery:
    return Delivery(ring.id, session_id, 1_010, "Here's your reminder: call your mother.")


async def test_reminders_are_listed_with_the_next_one_first(reminders: ReminderStore) -> None:
    await reminders.add(STAND, 100)
    await reminders.add(CALL, 100)
    assert await reminders.list("ann") == [CALL, STAND]


async def test_a_user_does_not_see_the_reminders_of_another(reminders: ReminderStore) -> None:
    await reminders.add(CALL, 100)
    assert await reminders.list("bob") == []


async def test_no_more_than_the_limit_are_stored(reminders: ReminderStore) -> None:
    assert await reminders.add(CALL, 1) is True
    assert await reminders.add(STAND, 1) is False
    assert await reminders.list("ann") == [CALL]


async def test_concurrent_additions_do_not_exceed_the_limit(reminders: ReminderStore) -> None:
    stored = await asyncio.gather(*(reminders.add(replace(CALL, id=f"r{number}"), 5) for number in range(20)))
    assert sorted(stored) == [False] * 15 + [True] * 5
    assert len(await reminders.list("ann")) == 5


async def test_the_limit_counts_for_each_user(reminders: ReminderStore) -> None:
    await reminders.add(CALL, 1)
    assert await reminders.add(replace(STAND, user="bob"), 1) is True


async def test_a_cancelled_reminder_is_gone(reminders: ReminderStore) -> None:
    await reminders.add(CALL, 100)
    await reminders.add(STAND, 100)
    assert await reminders.cancel("ann", ["r1", "r9"]) == [CALL]
    assert await reminders.list("ann") == [STAND]


async def test_a_reminder_of_another_user_is_not_cancelled(reminders: ReminderStore) -> None:
    await reminders.add(CALL, 100)
    assert await reminders.cancel("bob", ["r1"]) == []
    assert await reminders.list("ann") == [CALL]


async def test_the_next_time_is_the_earliest_of_all_users(reminders: ReminderStore) -> None:
    assert await reminders.next_due() is None
    await reminders.add(STAND, 100)
    await reminders.add(replace(CALL, user="bob"), 100)
    assert await reminders.next_due() == 1_000


async def test_what_is_due_is_found_the_longest_due_first(reminders: ReminderStore) -> None:
    await reminders.add(STAND, 100)
    await reminders.add(CALL, 100)
    assert await reminders.due(999, 10) == []
    assert await reminders.due(1_000, 10) == [CALL]
    assert await reminders.due(9_000, 10) == [CALL, STAND]
    assert await reminders.due(9_000, 1) == [CALL]


async def test_a_reminder_that_rings_is_gone_and_its_ring_is_open(reminders: ReminderStore) -> None:
    ring = await rung(reminders)
    assert await reminders.list("ann") == []
    assert (ring.message, ring.due_ms, ring.rung_ms, ring.created_ms) == ("call my mother", 1_000, 1_005, 100)
    assert await reminders.open_rings(["ann"], 0) == [OpenRing(ring)]


async def test_a_repeating_reminder_moves_to_its_next_time(reminders: ReminderStore) -> None:
    await reminders.add(STAND, 100)
    assert await reminders.ring(STAND, 5_000, 2_001) is not None
    assert await reminders.list("ann") == [replace(STAND, due_ms=5_000)]


async def test_of_many_processes_one_rings_a_reminder(reminders: ReminderStore) -> None:
    await reminders.add(CALL, 100)
    rings = await asyncio.gather(*(reminders.ring(CALL, None, 1_005) for _ in range(8)))
    assert len([ring for ring in rings if ring is not None]) == 1


async def test_of_many_processes_one_moves_a_repeating_reminder(reminders: ReminderStore) -> None:
    await reminders.add(STAND, 100)
    rings = await asyncio.gather(*(reminders.ring(STAND, 5_000, 2_005) for _ in range(8)))
    assert len([ring for ring in rings if ring is not None]) == 1


async def test_a_cancelled_reminder_does_not_ring(reminders: ReminderStore) -> None:
    await reminders.add(CALL, 100)
    await reminders.cancel("ann", ["r1"])
    assert await reminders.ring(CALL, None, 1_005) is None
    assert await reminders.open_rings(["ann"], 0) == []


async def test_a_ring_that_nobody_was_told_of_is_replaced_by_the_next(reminders: ReminderStore) -> None:
    await reminders.add(STAND, 100)
    await reminders.ring(STAND, 5_000, 2_001)
    await reminders.ring(replace(STAND, due_ms=5_000), 8_000, 5_001)
    assert [each.ring.due_ms for each in await reminders.open_rings(["ann"], 0)] == [5_000]


async def test_a_ring_that_was_delivered_is_not_replaced(reminders: ReminderStore, session: Fence) -> None:
    await reminders.add(STAND, 100)
    first = await reminders.ring(STAND, 5_000, 2_001)
    assert first is not None
    await reminders.deliver([told(first)], session, [(1, "{}")])
    await reminders.ring(replace(STAND, due_ms=5_000), 8_000, 5_001)
    assert [each.ring.due_ms for each in await reminders.open_rings(["ann"], 0)] == [2_000, 5_000]


async def test_a_delivery_is_stored_with_the_message(
    reminders: ReminderStore, session: Fence, database: MemoryDatabase | Database
) -> None:
    ring = await rung(reminders)
    assert await reminders.deliver([told(ring)], session, [(1, "before"), (2, "the reminder")]) is True
    assert await database.messages.after("s1", 0) == [(1, "before"), (2, "the reminder")]
    assert await reminders.open_rings(["ann"], 0) == [OpenRing(ring, (told(ring),))]


async def test_a_ring_is_delivered_to_a_session_once(
    reminders: ReminderStore, session: Fence, database: MemoryDatabase | Database
) -> None:
    ring = await rung(reminders)
    await reminders.deliver([told(ring)], session, [(1, "one")])
    assert await reminders.deliver([told(ring)], session, [(2, "two")]) is False
    assert await database.messages.after("s1", 0) == [(1, "one")]


async def test_each_session_can_be_told(
    reminders: ReminderStore, session: Fence, database: MemoryDatabase | Database
) -> None:
    await database.sessions.begin(session_record("s2"))
    ring = await rung(reminders)
    assert await reminders.deliver([told(ring)], session, [(1, "one")])
    assert await reminders.deliver([told(ring, "s2")], Fence("s2", 1), [(1, "one")])
    (opened,) = await reminders.open_rings(["ann"], 0)
    assert [each.session_id for each in opened.deliveries] == ["s1", "s2"]


async def test_of_several_rings_all_or_none_are_delivered(reminders: ReminderStore, session: Fence) -> None:
    ring = await rung(reminders)
    gone = Delivery("r9-1", "s1", 1_010, None)
    assert await reminders.deliver([told(ring), gone], session, [(1, "one")]) is False
    assert await reminders.open_rings(["ann"], 0) == [OpenRing(ring)]


async def test_a_process_that_has_lost_the_session_delivers_nothing(
    reminders: ReminderStore, session: Fence, database: MemoryDatabase | Database
) -> None:
    ring = await rung(reminders)
    await database.sessions.take_lease("s1", "two", 2_000, 9_000)
    with pytest.raises(Fenced):
        await reminders.deliver([told(ring)], session, [(1, "one")])
    assert await reminders.open_rings(["ann"], 0) == [OpenRing(ring)]


async def test_a_heard_ring_is_open_only_while_it_is_young(reminders: ReminderStore) -> None:
    ring = await rung(reminders)
    await reminders.hear([ring.id], 1_100)
    await reminders.hear([ring.id], 9_999)
    assert await reminders.open_rings(["ann"], 1_005) == [OpenRing(replace(ring, heard_ms=1_100))]
    assert await reminders.open_rings(["ann"], 1_006) == []


async def test_only_the_rings_of_the_users_are_open(reminders: ReminderStore) -> None:
    await rung(reminders)
    assert await reminders.open_rings(["bob"], 0) == []
    assert await reminders.open_rings([], 0) == []


async def test_the_last_ring_of_a_user_is_found(reminders: ReminderStore) -> None:
    await rung(reminders)
    latest = await rung(reminders, STAND, 2_003)
    assert await reminders.last_ring("ann", 0) == latest
    assert await reminders.last_ring("ann", 2_004) is None
    assert await reminders.last_ring("bob", 0) is None


async def test_a_user_is_forgotten_with_rings_and_reminders(reminders: ReminderStore) -> None:
    await rung(reminders)
    await reminders.add(STAND, 100)
    await reminders.add(replace(STAND, id="r3", user="bob"), 100)
    assert await reminders.clear("ann") == 1
    assert await reminders.open_rings(["ann"], 0) == []
    assert len(await reminders.list("bob")) == 1


async def test_old_rings_are_swept_and_unheard_ones_are_kept_longer(reminders: ReminderStore) -> None:
    heard = await rung(reminders)
    unheard = await rung(reminders, STAND, 2_001)
    await reminders.hear([heard.id], 1_100)
    assert await reminders.sweep(3_000, 2_000) == 1
    assert await _ids(reminders) == [unheard.id]
    assert await reminders.sweep(3_000, 3_000) == 1
    assert await _ids(reminders) == []


async def _ids(reminders: ReminderStore) -> Sequence[str]:
    return [each.ring.id for each in await reminders.open_rings(["ann"], 0)]
