"""The contract of the store of local calendars."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon.storage.calendar import CalendarStore, StoredEvent
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

TEA = StoredEvent("ann", "tea", "primary", "BEGIN:VCALENDAR tea", first_ms=1_000, last_ms=2_000)
GYM = StoredEvent("ann", "gym", "sport", "BEGIN:VCALENDAR gym", first_ms=500, last_ms=None)


@pytest.fixture
def events(database: MemoryDatabase | Database) -> CalendarStore:
    return database.calendar


async def test_an_event_is_added_once(events: CalendarStore) -> None:
    assert await events.add(TEA) is True
    assert await events.add(replace(TEA, ics="another")) is False
    assert await events.find("ann", "tea") == TEA


async def test_of_ten_concurrent_additions_one_succeeds(events: CalendarStore) -> None:
    added = await asyncio.gather(*(events.add(replace(TEA, ics=f"text {n}")) for n in range(10)))
    assert sum(added) == 1


async def test_users_do_not_share_events(events: CalendarStore) -> None:
    await events.add(TEA)
    assert await events.add(replace(TEA, user="bob")) is True
    assert [event.user for event in await events.list("bob")] == ["bob"]
    assert await events.remove("cyd", "tea") is False


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "found"),
    [
        (0, 500, []),
        (0, 501, ["gym"]),
        (0, 1_001, ["gym", "tea"]),
        (2_000, 3_000, ["gym", "tea"]),
        (2_001, 3_000, ["gym"]),
    ],
)
async def test_events_are_found_by_time(events: CalendarStore, start_ms: int, end_ms: int, found: list[str]) -> None:
    await events.put_all([TEA, GYM])
    assert [event.uid for event in await events.between("ann", start_ms, end_ms)] == found


async def test_putting_replaces_events_of_the_same_name(events: CalendarStore) -> None:
    await events.add(TEA)
    await events.put_all([replace(TEA, ics="new", calendar="work"), GYM])
    assert [(event.uid, event.ics, event.calendar) for event in await events.list("ann")] == [
        ("gym", GYM.ics, "sport"),
        ("tea", "new", "work"),
    ]


async def test_an_event_that_was_changed_meanwhile_is_not_replaced(events: CalendarStore) -> None:
    await events.add(TEA)
    assert await events.replace(TEA, replace(TEA, ics="first", last_ms=9)) is True
    assert await events.replace(TEA, replace(TEA, ics="second")) is False
    assert await events.find("ann", "tea") == replace(TEA, ics="first", last_ms=9)


async def test_a_removed_event_is_gone(events: CalendarStore) -> None:
    await events.add(TEA)
    assert await events.remove("ann", "tea") is True
    assert await events.remove("ann", "tea") is False
    assert await events.find("ann", "tea") is None


async def test_clearing_removes_all_events_of_one_user(events: CalendarStore) -> None:
    await events.put_all([TEA, GYM, replace(TEA, user="bob")])
    assert await events.clear("ann") == 2
    assert len(await events.list("bob")) == 1
