"""The contract of the conversation store: turns are durable, and only the owner of a session can add to them."""

import asyncio

import pytest
from msgspec.structs import asdict, replace

from antiphon.storage.base import StorageError
from antiphon.storage.conversations import Conversation, ConversationGone, ConversationStore, StoredTurn, Turn
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sessions import Fence, Fenced, SessionRecord, SessionStore
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time

MINE = Fence("s1", 1)
TURN = Turn("user", "Remind me of the café.", True, 2_000, b'{"role":"user"}')
ANSWER = Turn("assistant", "I will remind you of the café tomorrow.", True, 3_000, b"\x00\xff")


def conversation(id: str = "c1", *, user: str = "ann", updated_ms: int = 1_000) -> Conversation:
    return Conversation(id, user, f"About {id}", 1_000, updated_ms)


def stored(seq: int, turn: Turn, conversation_id: str = "c1") -> StoredTurn:
    return StoredTurn(conversation_id, seq, **asdict(turn))


OTHER_SESSION = SessionRecord("s2", "ann", "c1", "voice", "v1", 0, b"{}", "h2", 9_000, "node a", 1, 5_000, 1_000)


@pytest.fixture
def conversations(database: MemoryDatabase | Database) -> ConversationStore:
    return database.conversations


@pytest.fixture
async def sessions(database: MemoryDatabase | Database) -> SessionStore:
    """A store that has the session s1 with lease token 1."""
    record = SessionRecord("s1", "ann", "c1", "voice", "v1", 0, b"{}", "h1", 9_000, "node a", 1, 5_000, 1_000)
    await database.sessions.begin(record)
    return database.sessions


async def test_a_conversation_is_read_back_as_created(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    assert await conversations.get("c1", "ann") == conversation()


async def test_another_users_conversation_is_not_returned(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    assert await conversations.get("c1", "bob") is None


async def test_a_conversation_cannot_be_created_twice(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    with pytest.raises(StorageError):
        await conversations.create(conversation(user="bob"))
    assert await conversations.get("c1", "ann") == conversation()


async def test_turns_are_numbered_from_one_and_returned_in_order(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    assert [await conversations.append_many("c1", [turn], None) for turn in (TURN, ANSWER, TURN)] == [[1], [2], [3]]
    assert list(await conversations.turns("c1")) == [stored(1, TURN), stored(2, ANSWER), stored(3, TURN)]


async def test_each_conversation_has_its_own_turns_and_numbers(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    await conversations.create(conversation("c2"))
    await conversations.append_many("c1", [TURN], None)
    assert await conversations.append_many("c2", [ANSWER], None) == [1]
    assert list(await conversations.turns("c2")) == [stored(1, ANSWER, "c2")]


async def test_reading_continues_after_a_given_number(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    for _ in range(5):
        await conversations.append_many("c1", [TURN], None)
    assert [turn.seq for turn in await conversations.turns("c1", after_seq=2)] == [3, 4, 5]
    assert [turn.seq for turn in await conversations.turns("c1", after_seq=1, limit=2)] == [2, 3]


async def test_turns_appended_together_are_contiguous(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    groups = await asyncio.gather(*(conversations.append_many("c1", [TURN] * 3, None) for _ in range(20)))
    assert all(group == list(range(group[0], group[0] + 3)) for group in map(list, groups))
    assert len(await conversations.turns("c1")) == 60


async def test_turns_appended_together_are_stored_all_or_none(
    conversations: ConversationStore, sessions: SessionStore
) -> None:
    await conversations.create(conversation())
    with pytest.raises(Fenced):
        await conversations.append_many("c1", [TURN, TURN], Fence("nobody", 1))
    assert await conversations.turns("c1") == []


async def test_100_concurrent_turns_get_100_numbers(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    turns = [replace(TURN, text=str(number)) for number in range(100)]
    numbered = await asyncio.gather(*(conversations.append_many("c1", [turn], None) for turn in turns))
    numbers = [number for (number,) in numbered]
    assert sorted(numbers) == list(range(1, 101))
    texts = {turn.seq: turn.text for turn in await conversations.turns("c1")}
    assert [texts[number] for number in numbers] == [turn.text for turn in turns]


async def test_a_turn_updates_its_conversation(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    await conversations.append_many("c1", [TURN], None)
    assert await conversations.get("c1", "ann") == conversation(updated_ms=TURN.at_ms)


async def test_a_missing_conversation_accepts_no_turn(conversations: ConversationStore) -> None:
    with pytest.raises(ConversationGone, match="no conversation c1 any more"):
        await conversations.append_many("c1", [TURN], None)
    assert list(await conversations.turns("c1")) == []


async def test_an_amended_turn_keeps_its_position(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    for turn in (TURN, ANSWER, TURN):
        await conversations.append_many("c1", [turn], None)
    heard = replace(ANSWER, text="I will remind", body=b"{}")
    assert await conversations.amend("c1", 2, heard, None) is True
    assert list(await conversations.turns("c1")) == [stored(1, TURN), stored(2, heard), stored(3, TURN)]


async def test_a_cleared_turn_is_not_amended(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    await conversations.append_many("c1", [ANSWER], None)
    await conversations.clear("c1", None)
    assert await conversations.amend("c1", 1, TURN, None) is False
    assert list(await conversations.turns("c1")) == []


async def test_clearing_keeps_the_conversation_and_the_turns_of_other_conversations(
    conversations: ConversationStore,
) -> None:
    for id in ("c1", "c2"):
        await conversations.create(conversation(id))
        await conversations.append_many(id, [TURN], None)
    await conversations.clear("c1", None)
    assert await conversations.get("c1", "ann") is not None
    assert list(await conversations.turns("c1")) == []
    assert list(await conversations.turns("c2")) == [stored(1, TURN, "c2")]


async def test_numbering_continues_after_clearing(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    await conversations.append_many("c1", [TURN], None)
    await conversations.clear("c1", None)
    assert await conversations.append_many("c1", [ANSWER], None) == [2]


async def test_conversations_are_listed_most_recently_updated_first(conversations: ConversationStore) -> None:
    for id, updated_ms in (("c1", 10), ("c2", 30), ("c3", 20)):
        await conversations.create(conversation(id, updated_ms=updated_ms))
    await conversations.create(conversation("other", user="bob", updated_ms=40))
    assert [each.id for each in await conversations.list("ann", 10)] == ["c2", "c3", "c1"]


async def test_a_list_continues_from_the_last_conversation_seen(conversations: ConversationStore) -> None:
    for number in range(5):
        await conversations.create(conversation(f"c{number}", updated_ms=number))
    page = await conversations.list("ann", 2)
    assert [each.id for each in page] == ["c4", "c3"]
    assert [each.id for each in await conversations.list("ann", 2, page[-1].place)] == ["c2", "c1"]


async def test_conversations_of_the_same_millisecond_each_appear_on_exactly_one_page(
    conversations: ConversationStore,
) -> None:
    for number in range(9):
        await conversations.create(conversation(f"c{number * 7 % 9}", updated_ms=20 if number < 7 else 10))
    await conversations.create(conversation("other", user="bob", updated_ms=20))
    whole = list(await conversations.list("ann", 10))
    paged: list[Conversation] = []
    while page := await conversations.list("ann", 2, paged[-1].place if paged else None):
        paged += page
    assert paged == whole
    assert len(whole) == 9


async def test_a_list_continues_from_a_conversation_deleted_in_the_meantime(conversations: ConversationStore) -> None:
    for number in range(3):
        await conversations.create(conversation(f"c{number}"))
    await conversations.delete("c1", "ann")
    assert [each.id for each in await conversations.list("ann", 2, conversation("c1").place)] == ["c2"]


async def test_a_deleted_conversation_is_gone_with_its_turns(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    await conversations.append_many("c1", [TURN], None)
    assert await conversations.delete("c1", "ann") is True
    assert await conversations.get("c1", "ann") is None
    assert list(await conversations.turns("c1")) == []
    assert await conversations.delete("c1", "ann") is False


async def test_another_users_conversation_is_not_deleted(conversations: ConversationStore) -> None:
    await conversations.create(conversation())
    assert await conversations.delete("c1", "bob") is False
    assert await conversations.get("c1", "ann") == conversation()


async def test_inactive_conversations_are_deleted_and_counted(conversations: ConversationStore) -> None:
    for id, updated_ms in (("c1", 99), ("c2", 100), ("c3", 50)):
        await conversations.create(conversation(id, updated_ms=updated_ms))
    await conversations.append_many("c3", [TURN], None)
    assert await conversations.delete_before(100) == 1
    assert [each.id for each in await conversations.list("ann", 10)] == ["c3", "c2"]


async def test_any_number_of_old_conversations_is_deleted_with_their_turns(conversations: ConversationStore) -> None:
    for number in range(45):
        await conversations.create(conversation(f"c{number}"))
        await conversations.append_many(f"c{number}", [TURN], None)
    assert await conversations.delete_before(TURN.at_ms + 1) == 45
    assert list(await conversations.turns("c7")) == []


async def test_the_owner_of_the_lease_can_write(conversations: ConversationStore, sessions: SessionStore) -> None:
    await conversations.create(conversation())
    assert await conversations.append_many("c1", [TURN], MINE) == [1]
    assert await conversations.amend("c1", 1, ANSWER, MINE) is True
    await conversations.clear("c1", MINE)
    assert list(await conversations.turns("c1")) == []


async def test_clearing_deletes_the_messages_sent_to_the_client(
    conversations: ConversationStore, sessions: SessionStore, database: MemoryDatabase | Database
) -> None:
    await conversations.create(conversation())
    await sessions.begin(OTHER_SESSION)
    for session in ("s1", "s2"):
        await database.messages.append_many(session, [(1, "a"), (2, "b")], 1)
    await conversations.clear("c1", MINE)
    assert list(await database.messages.after("s1", 0)) == []
    assert list(await database.messages.after("s2", 0)) == [(1, "a"), (2, "b")]
    await database.messages.append_many("s1", [(3, "c")], 1)
    assert list(await database.messages.after("s1", 0)) == [(3, "c")]


async def test_a_fenced_append_stores_nothing(conversations: ConversationStore, sessions: SessionStore) -> None:
    await conversations.create(conversation())
    await conversations.append_many("c1", [TURN], MINE)
    await sessions.take_lease("s1", "node b", 2_000, 6_000)
    with pytest.raises(Fenced, match="s1 has ended or goes on in another process"):
        await conversations.append_many("c1", [replace(ANSWER, at_ms=9_000)], MINE)
    assert list(await conversations.turns("c1")) == [stored(1, TURN)]
    assert await conversations.get("c1", "ann") == conversation(updated_ms=TURN.at_ms)
    assert await conversations.append_many("c1", [ANSWER], Fence("s1", 2)) == [2]


async def test_a_fenced_writer_can_neither_amend_nor_clear(
    conversations: ConversationStore, sessions: SessionStore
) -> None:
    await conversations.create(conversation())
    await conversations.append_many("c1", [TURN], MINE)
    await sessions.take_lease("s1", "node b", 2_000, 6_000)
    with pytest.raises(Fenced):
        await conversations.amend("c1", 1, ANSWER, MINE)
    with pytest.raises(Fenced):
        await conversations.clear("c1", MINE)
    assert list(await conversations.turns("c1")) == [stored(1, TURN)]


async def test_an_ended_session_can_no_longer_write(conversations: ConversationStore, sessions: SessionStore) -> None:
    await conversations.create(conversation())
    await sessions.end("s1")
    with pytest.raises(Fenced):
        await conversations.append_many("c1", [TURN], MINE)
    assert list(await conversations.turns("c1")) == []


async def test_no_write_that_races_with_a_takeover_lands_after_it(
    conversations: ConversationStore, sessions: SessionStore
) -> None:
    await conversations.create(conversation())
    writes = [asyncio.create_task(conversations.append_many("c1", [TURN], MINE)) for _ in range(50)]
    await asyncio.wait([writes[10]])
    await sessions.take_lease("s1", "node b", 2_000, 6_000)
    seen = len(await conversations.turns("c1"))
    results = await asyncio.gather(*writes, return_exceptions=True)
    stored = sorted(number for each in results if not isinstance(each, BaseException) for number in each)
    assert stored == list(range(1, seen + 1))
    assert all(isinstance(each, Fenced) for each in results if isinstance(each, BaseException))
    assert len(await conversations.turns("c1")) == seen


async def test_client_messages_and_the_session_record_are_stored_with_a_turn(
    database: MemoryDatabase | Database, conversations: ConversationStore, sessions: SessionStore
) -> None:
    await conversations.create(conversation())
    record = SessionRecord("s1", "ann", "c1", "text", "v1", 7, b"{}", "h1", 9_000, "node a", 1, 5_000, 2_000)
    assert await conversations.append_many("c1", [TURN], MINE, sent=[(1, "a"), (2, "b")], record=record) == [1]
    await conversations.append_many("c1", [ANSWER], MINE, sent=[(3, "c")])
    assert await conversations.amend("c1", 2, TURN, MINE, sent=[(4, "d")])
    assert list(await database.messages.after("s1", 0)) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert (await sessions.take_lease("s1", "node b", 2_000, 9_000)).turn == 7


async def test_nothing_is_stored_with_a_turn_that_fails_to_store(
    database: MemoryDatabase | Database, conversations: ConversationStore, sessions: SessionStore
) -> None:
    await conversations.create(conversation())
    with pytest.raises(ConversationGone):
        await conversations.append_many("gone", [TURN], MINE, sent=[(1, "a")])
    with pytest.raises(Fenced):
        await conversations.append_many("c1", [TURN], Fence("s1", 2), sent=[(1, "a")])
    assert not await conversations.amend("c1", 9, TURN, MINE, sent=[(1, "a")])
    assert list(await database.messages.after("s1", 0)) == []
    assert list(await conversations.turns("c1")) == []
