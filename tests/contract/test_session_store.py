"""The contract of the session store: a session has one owner at a time, and one valid resume handle."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon.storage.base import StorageError
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sessions import Fenced, SessionRecord, SessionStore
from antiphon.storage.sql import Database

pytestmark = pytest.mark.real_time


def session(id: str = "s1", *, handle_hash: str = "h1", user: str = "ann") -> SessionRecord:
    return SessionRecord(
        id=id,
        user=user,
        conversation_id="c1",
        mode="voice",
        tools_version="v1",
        turn=0,
        state=b"\x00{}",
        handle_hash=handle_hash,
        handle_expires_ms=9_000,
        lease_owner="node a",
        lease_token=1,
        lease_until_ms=5_000,
        updated_ms=1_000,
    )


@pytest.fixture
def sessions(database: MemoryDatabase | Database) -> SessionStore:
    return database.sessions


async def rotate(
    sessions: SessionStore, old: str = "h1", new: str = "h2", *, user: str = "ann", now_ms: int = 2_000
) -> SessionRecord | None:
    return await sessions.rotate(old, new, user, now_ms, now_ms + 7_000)


async def test_a_handle_opens_its_session_and_is_replaced_by_the_next(sessions: SessionStore) -> None:
    await sessions.begin(session())
    renewed = replace(session(), handle_hash="h2", previous_handle_hash="h1", handle_expires_ms=9_000, updated_ms=2_000)
    assert await rotate(sessions) == renewed
    assert await rotate(sessions, "h2", "h3") == replace(renewed, handle_hash="h3", previous_handle_hash="h2")


async def test_a_handle_is_invalid_once_the_next_one_was_used(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await rotate(sessions)
    await rotate(sessions, "h2", "h3")
    assert await rotate(sessions, "h1", "h4") is None


async def test_a_handle_is_invalid_once_the_client_has_the_next_one(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await rotate(sessions)
    await sessions.settle_handle("s1", 1)
    assert await rotate(sessions, "h1", "h3") is None
    assert await rotate(sessions, "h2", "h3") is not None


async def test_a_client_that_never_got_the_next_handle_can_reuse_the_old_one(sessions: SessionStore) -> None:
    await sessions.begin(session())
    for lost in ("h2", "h3", "h4"):
        found = await rotate(sessions, "h1", lost)
        assert found is not None
        assert found.id == "s1"
    assert await rotate(sessions, "h3", "h5") is None, "a handle that another one has replaced"
    assert await rotate(sessions, "h4", "h5") is not None


async def test_a_session_that_was_resumed_before_it_was_stored_has_both_of_its_handles(sessions: SessionStore) -> None:
    await sessions.begin(replace(session(handle_hash="h2"), previous_handle_hash="h1"))
    assert await rotate(sessions, "h1", "h3") is not None
    assert await rotate(sessions, "h3", "h4") is not None
    assert await rotate(sessions, "h2", "h5") is None


async def test_a_fenced_owner_cannot_settle_a_handle(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await rotate(sessions)
    await sessions.take_lease("s1", "node b", 2_000, 9_000)
    await sessions.settle_handle("s1", 1)
    assert await rotate(sessions, "h1", "h3") is not None


async def test_the_last_of_100_resumes_with_one_handle_holds_the_valid_handle(sessions: SessionStore) -> None:
    await sessions.begin(session())
    given = await asyncio.gather(*(rotate(sessions, new=f"new{number}") for number in range(100)))
    assert [each.id for each in given if each is not None] == ["s1"] * 100
    left = [number for number in range(100) if await rotate(sessions, f"new{number}", f"newer{number}")]
    assert len(left) == 1


async def test_an_unknown_handle_opens_nothing(sessions: SessionStore) -> None:
    await sessions.begin(session())
    assert await rotate(sessions, "unknown") is None


async def test_another_users_handle_opens_nothing_and_stays_valid(sessions: SessionStore) -> None:
    await sessions.begin(session())
    assert await rotate(sessions, user="bob") is None
    assert await rotate(sessions) is not None


async def test_a_handle_works_until_it_expires(sessions: SessionStore) -> None:
    await sessions.begin(session())
    assert await rotate(sessions, now_ms=9_000) is None
    assert await rotate(sessions, now_ms=8_999) is not None


async def test_a_session_cannot_begin_twice(sessions: SessionStore) -> None:
    await sessions.begin(session())
    with pytest.raises(StorageError):
        await sessions.begin(session(handle_hash="other"))


async def test_a_process_that_is_not_sure_whether_a_session_has_begun_begins_it_again(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await sessions.begin(session())
    assert await rotate(sessions, now_ms=0) is not None


async def test_two_sessions_cannot_share_a_handle(sessions: SessionStore) -> None:
    await sessions.begin(session())
    with pytest.raises(StorageError):
        await sessions.begin(session("s2"))


async def test_the_next_owner_finds_what_the_owner_saved(sessions: SessionStore) -> None:
    await sessions.begin(session())
    changed = replace(
        session(),
        conversation_id="c2",
        mode="text",
        tools_version="v2",
        turn=4,
        state=b'{"volume":80}',
        handle_expires_ms=20_000,
        updated_ms=3_000,
    )
    await sessions.save(changed)
    found = replace(changed, handle_hash="h2", previous_handle_hash="h1", updated_ms=13_000)
    assert await rotate(sessions, now_ms=13_000) == found


async def test_saving_does_not_revive_a_used_handle(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await rotate(sessions)
    await sessions.settle_handle("s1", 1)
    await sessions.save(session())
    assert await rotate(sessions, "h1", "h3") is None
    assert await rotate(sessions, "h2", "h3") is not None


async def test_saving_changes_neither_the_user_nor_the_lease(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await sessions.save(replace(session(), user="bob", lease_owner="node x", lease_until_ms=99_000))
    found = await rotate(sessions)
    assert found is not None
    assert (found.user, found.lease_owner, found.lease_until_ms) == ("ann", "node a", 5_000)


async def test_taking_the_lease_returns_the_session_as_last_saved(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await sessions.save(replace(session(), turn=7))
    taken = replace(session(), turn=7, lease_owner="node b", lease_token=2, lease_until_ms=6_000, updated_ms=2_000)
    assert await sessions.take_lease("s1", "node b", 2_000, 6_000) == taken


async def test_an_earlier_owner_cannot_save(sessions: SessionStore) -> None:
    await sessions.begin(session())
    taken = await sessions.take_lease("s1", "node b", 2_000, 6_000)
    with pytest.raises(Fenced):
        await sessions.save(replace(session(), turn=99))
    await sessions.save(replace(taken, turn=1))
    assert (await sessions.take_lease("s1", "node c", 2_000, 6_000)).turn == 1


async def test_every_takeover_gets_a_higher_fencing_token(sessions: SessionStore) -> None:
    await sessions.begin(session())
    taken = await asyncio.gather(*(sessions.take_lease("s1", f"node {n}", 2_000, 6_000) for n in range(20)))
    assert sorted(each.lease_token for each in taken) == list(range(2, 22))


async def test_the_lease_of_a_missing_session_cannot_be_taken(sessions: SessionStore) -> None:
    with pytest.raises(Fenced):
        await sessions.take_lease("s1", "node b", 2_000, 6_000)


async def test_only_the_owner_can_renew_the_lease(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await sessions.take_lease("s1", "node b", 2_000, 6_000)
    assert await sessions.renew("s1", 1, 50_000) is False
    assert await sessions.renew("s1", 2, 8_000) is True
    found = await rotate(sessions)
    assert found is not None
    assert found.lease_until_ms == 8_000


async def test_the_lease_of_a_missing_session_cannot_be_renewed(sessions: SessionStore) -> None:
    assert await sessions.renew("s1", 1, 8_000) is False


async def test_an_ended_session_cannot_be_resumed(sessions: SessionStore) -> None:
    await sessions.begin(session())
    assert await sessions.end("s1") is True
    assert await rotate(sessions) is None
    assert await sessions.end("s1") is False


async def test_saving_does_not_revive_an_ended_session(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await sessions.end("s1")
    with pytest.raises(Fenced):
        await sessions.save(session())
    assert await rotate(sessions) is None


async def test_an_earlier_owner_cannot_end_the_session(sessions: SessionStore) -> None:
    await sessions.begin(session())
    await sessions.take_lease("s1", "node b", 2_000, 6_000)
    assert await sessions.end("s1", 1) is False
    assert await sessions.end("s1", 2) is True


async def test_all_sessions_of_a_user_are_ended_together(sessions: SessionStore) -> None:
    await sessions.begin(session("one", handle_hash="h1"))
    await sessions.begin(session("two", handle_hash="h2"))
    await sessions.begin(replace(session("other", handle_hash="h3"), user="bob"))
    assert await sessions.end_all(session().user) == 2
    assert [await sessions.end(id) for id in ("one", "two", "other")] == [False, False, True]


async def test_sweep_ends_sessions_that_are_unowned_and_cannot_be_resumed(sessions: SessionStore) -> None:
    await sessions.begin(replace(session("over", handle_hash="h1"), handle_expires_ms=100, lease_until_ms=100))
    await sessions.begin(replace(session("held", handle_hash="h2"), handle_expires_ms=100, lease_until_ms=101))
    await sessions.begin(replace(session("left", handle_hash="h3"), handle_expires_ms=101, lease_until_ms=100))
    assert await sessions.sweep(100) == 1
    assert [await sessions.end(id) for id in ("over", "held", "left")] == [False, True, True]


async def test_any_number_of_sessions_can_be_swept(sessions: SessionStore) -> None:
    for number in range(45):
        await sessions.begin(session(f"s{number}", handle_hash=f"h{number}"))
    assert await sessions.sweep(1 << 40) == 45


def claim_of(owner: str, now_ms: int, id: str = "s1") -> SessionRecord:
    """What a process claims a session with: a new record, in case there is no such session yet."""
    return replace(
        session(id, handle_hash=f"handle of {id} by {owner}"),
        lease_owner=owner,
        lease_until_ms=now_ms + 5_000,
        updated_ms=now_ms,
    )


async def test_a_claim_begins_a_session_that_does_not_exist(sessions: SessionStore) -> None:
    assert await sessions.claim(claim_of("node a", 1_000)) == claim_of("node a", 1_000)
    assert await rotate(sessions, "handle of s1 by node a") is not None


async def test_a_claim_succeeds_when_the_lease_is_over_or_released(sessions: SessionStore) -> None:
    await sessions.begin(session())
    assert await sessions.claim(claim_of("node b", 4_999)) is None
    taken = await sessions.claim(claim_of("node b", 5_000))
    assert taken == replace(session(), lease_owner="node b", lease_token=2, lease_until_ms=10_000, updated_ms=5_000)
    with pytest.raises(Fenced):
        await sessions.save(session())
    assert await sessions.claim(claim_of("node a", 5_001)) is None
    assert await sessions.renew("s1", 2, 0)
    released = await sessions.claim(claim_of("node a", 5_001))
    assert released is not None
    assert (released.lease_owner, released.lease_token) == ("node a", 3)


async def test_a_process_may_claim_what_it_holds_itself(sessions: SessionStore) -> None:
    await sessions.begin(session())
    taken = await sessions.claim(claim_of("node a", 2_000))
    assert taken is not None
    assert (taken.lease_token, taken.lease_until_ms, taken.handle_hash) == (2, 7_000, "h1")


@pytest.mark.parametrize("exists", [True, False])
async def test_one_of_20_concurrent_claims_succeeds(sessions: SessionStore, exists: bool) -> None:
    if exists:
        await sessions.begin(session())
    claims = await asyncio.gather(*(sessions.claim(claim_of(f"node {number}", 6_000)) for number in range(20)))
    [won] = [each for each in claims if each is not None]
    assert [each.lease_owner for each in await sessions.held_in("c1", 6_000)] == [won.lease_owner]


async def test_the_processes_that_hold_leases_are_listed(sessions: SessionStore) -> None:
    for id, owner, user in (("s1", "node a", "ann"), ("s2", "node a", "bob"), ("s3", "node b", "bob")):
        await sessions.begin(replace(claim_of(owner, 1_000, id), user=user))
    await sessions.begin(replace(claim_of("node c", 0, "s4"), lease_until_ms=2_000))
    assert sorted(await sessions.holders(2_000)) == ["node a", "node b"]
    assert sorted(await sessions.holders(1_999)) == ["node a", "node b", "node c"]
    assert await sessions.holders(2_000, "ann") == ["node a"]
    assert await sessions.holders(2_000, "eve") == []


async def test_the_held_sessions_of_a_conversation_are_found(sessions: SessionStore) -> None:
    for id, conversation, until_ms in (("s1", "c1", 5_000), ("s2", "c1", 2_000), ("s3", "c2", 5_000)):
        await sessions.begin(
            replace(session(id, handle_hash=id), conversation_id=conversation, lease_until_ms=until_ms)
        )
    [held] = await sessions.held_in("c1", 2_000)
    assert held == session("s1", handle_hash="s1")
    assert {each.id for each in await sessions.held_in("c1", 1_999)} == {"s1", "s2"}
