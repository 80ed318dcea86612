"""The contract of the event store: events belong to a stored conversation, and go with it."""

import pytest

from antiphon.storage.conversations import Conversation
from antiphon.storage.events import SessionEvent
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

Stores = MemoryDatabase | Database


def event(at_ms: int, conversation_id: str = "c1") -> SessionEvent:
    return SessionEvent(conversation_id, "s1", at_ms, "turn_metrics", {"total_ms": 480.5, "model": None})


@pytest.fixture
async def stores(database: Stores) -> Stores:
    for id in ("c1", "c2"):
        await database.conversations.create(Conversation(id, "ann", "Tea", 1_000, 1_000))
    return database


async def test_the_newest_events_of_a_conversation_are_read_oldest_first(stores: Stores) -> None:
    await stores.events.append([event(1), event(2, "c2")])
    await stores.events.append([event(3), event(4)])
    assert list(await stores.events.list("c1", 10)) == [event(1), event(3), event(4)]
    assert list(await stores.events.list("c1", 2)) == [event(3), event(4)]


async def test_events_of_a_conversation_that_is_not_stored_are_left_out(stores: Stores) -> None:
    await stores.events.append([event(1, "unknown"), event(2)])
    await stores.events.append([])
    assert list(await stores.events.list("unknown", 10)) == []
    assert list(await stores.events.list("c1", 10)) == [event(2)]


async def test_events_are_deleted_with_their_conversation(stores: Stores) -> None:
    await stores.events.append([event(1)])
    await stores.conversations.delete("c1", "ann")
    assert list(await stores.events.list("c1", 10)) == []


async def test_events_are_cleared_with_the_turns(stores: Stores) -> None:
    await stores.events.append([event(1), event(2, "c2")])
    await stores.conversations.clear("c1", None)
    assert list(await stores.events.list("c1", 10)) == []
    assert list(await stores.events.list("c2", 10)) == [event(2, "c2")]
