"""The contract of the voice call store: the history of calls, each with its outcome."""

import pytest
from msgspec.structs import replace

from antiphon.storage.base import StorageError
from antiphon.storage.conversations import Conversation, VoiceCall, VoiceCallStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sessions import Fence, Fenced, SessionRecord
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


def call(id: str = "v1", *, user: str = "ann", started_ms: int = 1_000) -> VoiceCall:
    return VoiceCall(id, "c1", user, started_ms, None, "", (), 3, None)


ENDED = replace(
    call(), ended_ms=9_000, summary="Booked the café.", models=("live", "cascade"), last_seq=8, energy_path=(3, 2, 1)
)


@pytest.fixture
def voice_calls(database: MemoryDatabase | Database) -> VoiceCallStore:
    return database.voice_calls


async def end(voice_calls: VoiceCallStore, id: str = "v1", fence: Fence | None = None) -> bool:
    return await voice_calls.end(replace(ENDED, id=id), fence)


async def test_an_ongoing_call_is_read_back_as_it_began(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    assert await voice_calls.get("v1", "ann") == call()


async def test_a_call_cannot_begin_twice(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    with pytest.raises(StorageError):
        await voice_calls.begin(call(user="bob"), None)
    assert await voice_calls.get("v1", "ann") == call()


async def test_ending_a_call_completes_its_record(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    assert await end(voice_calls) is True
    assert await voice_calls.get("v1", "ann") == ENDED


async def test_a_call_can_end_only_once(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    await end(voice_calls)
    assert await voice_calls.end(replace(ENDED, ended_ms=10_000, summary="Other."), None) is False
    assert await voice_calls.get("v1", "ann") == ENDED


async def test_an_unknown_call_cannot_end(voice_calls: VoiceCallStore) -> None:
    assert await end(voice_calls, "unknown") is False


async def test_the_summary_of_an_ended_call_is_replaced(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    await end(voice_calls)
    assert await voice_calls.set_summary("v1", "You booked a table in the café.") is True
    assert await voice_calls.get("v1", "ann") == replace(ENDED, summary="You booked a table in the café.")


async def test_a_call_that_goes_on_or_is_gone_gets_no_summary(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    assert await voice_calls.set_summary("v1", "Too early.") is False
    assert await voice_calls.set_summary("unknown", "Of nothing.") is False
    assert await voice_calls.get("v1", "ann") == call()


async def test_the_latest_ended_call_of_a_conversation_is_found(voice_calls: VoiceCallStore) -> None:
    assert await voice_calls.latest_ended("c1", "ann") is None
    for id, started_ms in (("v1", 10), ("v2", 30), ("v3", 20), ("ongoing", 40)):
        await voice_calls.begin(call(id, started_ms=started_ms), None)
    await voice_calls.begin(replace(call("elsewhere", started_ms=50), conversation_id="c2"), None)
    for id, started_ms in (("v1", 10), ("v2", 30), ("v3", 20)):
        await voice_calls.end(replace(ENDED, id=id, started_ms=started_ms), None)
    await voice_calls.end(replace(ENDED, id="elsewhere", conversation_id="c2", started_ms=50), None)
    found = await voice_calls.latest_ended("c1", "ann")
    assert found is not None
    assert found.id == "v2"
    assert await voice_calls.latest_ended("c1", "bob") is None


async def test_calls_are_listed_most_recent_first(voice_calls: VoiceCallStore) -> None:
    for id, started_ms in (("v1", 10), ("v2", 30), ("v3", 20)):
        await voice_calls.begin(call(id, started_ms=started_ms), None)
    await voice_calls.begin(call("other", user="bob", started_ms=40), None)
    assert [each.id for each in await voice_calls.list("ann", 2)] == ["v2", "v3"]


async def test_another_users_call_is_neither_returned_nor_deleted(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    assert await voice_calls.get("v1", "bob") is None
    assert await voice_calls.delete("v1", "bob") is False
    assert await voice_calls.get("v1", "ann") == call()


async def test_a_deleted_call_is_not_found(voice_calls: VoiceCallStore) -> None:
    await voice_calls.begin(call(), None)
    assert await voice_calls.delete("v1", "ann") is True
    assert await voice_calls.get("v1", "ann") is None


async def test_clearing_deletes_all_calls_of_one_user(voice_calls: VoiceCallStore) -> None:
    for id, user in (("v1", "ann"), ("v2", "ann"), ("v3", "bob")):
        await voice_calls.begin(call(id, user=user), None)
    assert await voice_calls.clear("ann") == 2
    assert list(await voice_calls.list("ann", 10)) == []
    assert [each.id for each in await voice_calls.list("bob", 10)] == ["v3"]


async def test_old_calls_are_deleted_and_counted(voice_calls: VoiceCallStore) -> None:
    for id, started_ms in (("v1", 99), ("v2", 100)):
        await voice_calls.begin(call(id, started_ms=started_ms), None)
    assert await voice_calls.delete_before(100) == 1
    assert [each.id for each in await voice_calls.list("ann", 10)] == ["v2"]


async def test_a_call_outlives_its_conversation(database: MemoryDatabase | Database) -> None:
    await database.conversations.create(Conversation("c1", "ann", "", 1_000, 1_000))
    await database.voice_calls.begin(call(), None)
    await database.conversations.delete("c1", "ann")
    assert await database.voice_calls.get("v1", "ann") == call()


async def test_a_fenced_writer_can_neither_begin_nor_end_a_call(database: MemoryDatabase | Database) -> None:
    record = SessionRecord("s1", "ann", "c1", "voice", "v1", 0, b"{}", "h1", 9_000, "node a", 1, 5_000, 1_000)
    await database.sessions.begin(record)
    await database.voice_calls.begin(call(), Fence("s1", 1))
    await database.sessions.take_lease("s1", "node b", 2_000, 6_000)
    with pytest.raises(Fenced):
        await end(database.voice_calls, fence=Fence("s1", 1))
    with pytest.raises(Fenced):
        await database.voice_calls.begin(call("v2"), Fence("s1", 1))
    assert list(await database.voice_calls.list("ann", 10)) == [call()]
