"""The contract of the recording store: which recordings there are, until their conversation is deleted."""

import pytest
from msgspec.structs import replace

from antiphon.storage.base import StorageError
from antiphon.storage.conversations import Conversation, ConversationGone
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.recordings import Mark, Recording, RecordingStore
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


def recording(
    id: str = "r1", *, user: str = "ann", conversation: str = "c1", call: str = "v1", started_ms: int = 1_000
) -> Recording:
    return Recording(id, conversation, user, call, started_ms, None, 2, None, "opus", f"{id}.opus", "here")


FINISHED = replace(recording(), duration_ms=61_500, size_bytes=370_000, marks=(Mark(1, 800), Mark(2, 4_200)))


@pytest.fixture
async def recordings(database: MemoryDatabase | Database) -> RecordingStore:
    for id, user in (("c1", "ann"), ("c2", "ann"), ("c3", "bob")):
        await database.conversations.create(Conversation(id, user, "A talk", 1, 1))
    return database.recordings


async def test_a_recording_is_read_back_as_it_began(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    assert await recordings.get("r1", "ann") == recording()


async def test_saving_adds_the_duration_the_size_and_the_marks(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    assert await recordings.save(FINISHED) is True
    assert await recordings.get("r1", "ann") == FINISHED


async def test_saving_a_recording_that_is_gone_changes_nothing(recordings: RecordingStore) -> None:
    assert await recordings.save(FINISHED) is False
    assert await recordings.list("ann") == []


async def test_a_recording_needs_a_conversation(recordings: RecordingStore) -> None:
    with pytest.raises(ConversationGone):
        await recordings.add(recording(conversation="unknown"))


async def test_an_id_is_used_once(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    with pytest.raises(StorageError):
        await recordings.add(replace(recording(), file="other.opus"))


async def test_nobody_gets_the_recording_of_another_user(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    assert await recordings.get("r1", "bob") is None
    assert await recordings.list("bob", "c1") == []


async def test_recordings_are_listed_by_conversation_and_by_user_the_oldest_first(recordings: RecordingStore) -> None:
    second, first = recording("a", started_ms=2_000), recording("b", started_ms=1_000)
    other = recording("c", conversation="c2", started_ms=1_500)
    for each in (second, first, other, recording("d", user="bob", conversation="c3")):
        await recordings.add(each)
    assert await recordings.list("ann", "c1") == [first, second]
    assert await recordings.list("ann") == [first, other, second]


async def test_recordings_are_found_by_their_files(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    await recordings.add(recording("r2"))
    assert await recordings.find(["r2.opus", "stray.opus"]) == [recording("r2")]
    assert await recordings.find([]) == []


async def test_a_recording_is_deleted_with_its_conversation(
    recordings: RecordingStore, database: MemoryDatabase | Database
) -> None:
    await recordings.add(recording())
    await recordings.add(recording("r2", conversation="c2"))
    assert await database.conversations.delete("c1", "ann")
    assert await recordings.get("r1", "ann") is None
    assert await recordings.find(["r1.opus", "r2.opus"]) == [recording("r2", conversation="c2")]
    assert await recordings.save(FINISHED) is False


async def test_a_recording_is_deleted_with_a_conversation_that_has_grown_too_old(
    recordings: RecordingStore, database: MemoryDatabase | Database
) -> None:
    await recordings.add(recording())
    await database.conversations.delete_before(2)
    assert await recordings.list("ann") == []


async def test_deleting_returns_what_was_deleted(recordings: RecordingStore) -> None:
    of_call, other_call = recording("r1"), recording("r2", call="v2", started_ms=2_000)
    other_conversation, of_bob = recording("r3", conversation="c2"), recording("r4", user="bob", conversation="c3")
    for each in (of_call, other_call, other_conversation, of_bob):
        await recordings.add(each)
    assert await recordings.delete("bob", conversation_id="c1") == []
    assert await recordings.delete("ann", call_id="v2") == [other_call]
    assert await recordings.delete("bob", id="r1") == []
    assert await recordings.delete("ann", id="r1") == [of_call]
    await recordings.add(of_call)
    assert await recordings.delete("ann", conversation_id="c1") == [of_call]
    assert await recordings.delete("ann") == [other_conversation]
    assert await recordings.list("bob") == [of_bob]


async def test_many_recordings_are_deleted_at_once_the_oldest_first(recordings: RecordingStore) -> None:
    all = [recording(f"r{number}", started_ms=1_000 - number) for number in range(45)]
    for each in all:
        await recordings.add(each)
    assert await recordings.delete("ann") == all[::-1]


async def test_old_recordings_are_deleted(recordings: RecordingStore) -> None:
    old, new = recording("r1", started_ms=999), recording("r2", started_ms=1_000)
    await recordings.add(old)
    await recordings.add(new)
    assert await recordings.delete_before(1_000) == [old]
    assert await recordings.list("ann") == [new]


# The sound.


async def test_the_parts_of_a_recording_are_read_back_and_it_knows_when_it_has_all(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    first, second = bytes(range(256)) * 1024, b"the rest"
    assert await recordings.add_part("r1", 0, first)
    assert await recordings.add_part("r1", 1, second)
    assert await recordings.get("r1", "ann") == recording()
    assert await recordings.mark_stored("r1") is True
    assert [await recordings.part("r1", number) for number in range(3)] == [first, second, None]
    assert await recordings.get("r1", "ann") == replace(recording(), is_stored=True)


async def test_a_part_that_is_there_already_is_not_stored_again(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    assert await recordings.add_part("r1", 0, b"sound")
    assert await recordings.add_part("r1", 0, b"sound")
    assert await recordings.part("r1", 0) == b"sound"


async def test_a_recording_that_is_gone_takes_no_parts(recordings: RecordingStore) -> None:
    assert await recordings.add_part("r1", 0, b"sound") is False
    assert await recordings.mark_stored("r1") is False
    assert await recordings.part("r1", 0) is None


async def test_saving_does_not_forget_that_the_sound_is_stored(recordings: RecordingStore) -> None:
    await recordings.add(recording())
    await recordings.mark_stored("r1")
    await recordings.save(FINISHED)
    assert await recordings.get("r1", "ann") == replace(FINISHED, is_stored=True)


async def test_the_sound_is_deleted_with_its_recording_and_with_its_conversation(
    recordings: RecordingStore, database: MemoryDatabase | Database
) -> None:
    for each in (recording("r1"), recording("r2", conversation="c2"), recording("r3", user="bob", conversation="c3")):
        await recordings.add(each)
        await recordings.add_part(each.id, 0, b"sound")
    await recordings.delete("ann", id="r1")
    await database.conversations.delete("c2", "ann")
    # An id that is used again has nothing of the old sound.
    await recordings.add(recording("r1"))
    await recordings.add(recording("r2"))
    assert [await recordings.part(id, 0) for id in ("r1", "r2", "r3")] == [None, None, b"sound"]
