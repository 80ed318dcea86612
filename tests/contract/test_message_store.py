"""The contract of the message store: missed messages are replayed in order and without a gap."""

import pytest

from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sessions import (
    CHARACTERS_KEPT,
    MESSAGES_KEPT,
    Fenced,
    MessageStore,
    SessionRecord,
    SessionStore,
)
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


@pytest.fixture
async def sessions(database: MemoryDatabase | Database) -> SessionStore:
    """A store that has the sessions s1 and s2 with lease token 1."""
    for id in ("s1", "s2"):
        await database.sessions.begin(
            SessionRecord(id, "ann", "c1", "voice", "v1", 0, b"{}", f"h-{id}", 9_000, "node a", 1, 5_000, 1_000)
        )
    return database.sessions


@pytest.fixture
def messages(database: MemoryDatabase | Database, sessions: SessionStore) -> MessageStore:
    return database.messages


async def test_messages_after_a_number_are_returned_in_order(messages: MessageStore) -> None:
    await messages.append_many("s1", [(1, "a")], 1)
    await messages.append_many("s1", [(2, "b"), (3, "ç")], 1)
    assert list(await messages.after("s1", 0)) == [(1, "a"), (2, "b"), (3, "ç")]
    assert list(await messages.after("s1", 1)) == [(2, "b"), (3, "ç")]
    assert list(await messages.after("s1", 3)) == []


async def test_sessions_have_their_own_messages(messages: MessageStore) -> None:
    await messages.append_many("s1", [(1, "a")], 1)
    await messages.append_many("s2", [(1, "b")], 1)
    assert list(await messages.after("s2", 0)) == [(1, "b")]


async def test_an_unknown_session_has_no_messages(messages: MessageStore) -> None:
    assert list(await messages.after("unknown", 0)) == []


async def test_a_message_replaces_one_whose_storing_was_taken_for_a_failure(messages: MessageStore) -> None:
    await messages.append_many("s1", [(1, "a"), (2, "b")], 1)
    await messages.append_many("s1", [(2, "other"), (3, "c")], 1)
    assert list(await messages.after("s1", 0)) == [(1, "a"), (2, "other"), (3, "c")]


async def test_a_fenced_batch_stores_nothing(messages: MessageStore, sessions: SessionStore) -> None:
    await messages.append_many("s1", [(1, "a")], 1)
    await sessions.take_lease("s1", "node b", 2_000, 6_000)
    with pytest.raises(Fenced):
        await messages.append_many("s1", [(2, "late"), (3, "later")], 1)
    assert list(await messages.after("s1", 0)) == [(1, "a")]
    await messages.append_many("s1", [(2, "b")], 2)
    assert list(await messages.after("s1", 1)) == [(2, "b")]


async def test_a_session_that_never_began_accepts_no_message(messages: MessageStore) -> None:
    with pytest.raises(Fenced):
        await messages.append_many("unknown", [(1, "a")], 1)


async def test_an_empty_batch_changes_nothing(messages: MessageStore) -> None:
    await messages.append_many("s1", [], 1)
    assert list(await messages.after("s1", 0)) == []


async def test_messages_are_deleted_with_their_session(messages: MessageStore, sessions: SessionStore) -> None:
    await messages.append_many("s1", [(1, "a")], 1)
    await sessions.end("s1")
    assert list(await messages.after("s1", 0)) == []


async def test_the_newest_messages_are_kept_and_the_oldest_are_dropped(messages: MessageStore) -> None:
    sent = [(n, f"message {n}") for n in range(1, 2 * MESSAGES_KEPT + 501)]
    for at in range(0, len(sent), 50):
        await messages.append_many("s1", sent[at : at + 50], 1)
    kept = list(await messages.after("s1", 0))
    assert kept == sent[-len(kept) :]
    assert MESSAGES_KEPT <= len(kept) <= 2 * MESSAGES_KEPT


async def test_fewer_long_messages_are_kept(messages: MessageStore) -> None:
    text = "x" * (CHARACTERS_KEPT // 16)
    for n in range(1, 65):
        await messages.append_many("s1", [(n, text)], 1)
    kept = [n for n, _ in await messages.after("s1", 0)]
    assert kept == list(range(65 - len(kept), 65))
    assert 16 <= len(kept) <= 32


async def test_an_oversized_message_is_kept_while_it_is_the_newest(messages: MessageStore) -> None:
    long = "x" * (CHARACTERS_KEPT + 1)
    await messages.append_many("s1", [(1, "short")], 1)
    await messages.append_many("s1", [(2, long)], 1)
    assert list(await messages.after("s1", 1)) == [(2, long)]
