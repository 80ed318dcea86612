"""The contract of the confirmation store: a confirmation approves one call, once."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon.storage.base import Confirmation, ConfirmationStore

pytestmark = pytest.mark.real_time


def confirmation(
    token_hash: str = "t1", *, session_id: str = "s1", user: str = "ann", expires_ms: int = 300_000
) -> Confirmation:
    return Confirmation(
        token_hash=token_hash,
        session_id=session_id,
        user=user,
        tool="calendar_create_event",
        tool_digest="d" * 64,
        args='{"title":"Café"}'.encode(),
        call_id=None,
        occurrence=0,
        mode="text",
        turn=2,
        preview="Create “Café”, tomorrow at 9?",
        expires_ms=expires_ms,
    )


async def test_a_confirmation_is_taken_unchanged(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation())
    assert await confirmations.take("t1", "s1", "ann") == confirmation()


async def test_a_confirmation_is_taken_only_once(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation())
    await confirmations.take("t1", "s1", "ann")
    assert await confirmations.take("t1", "s1", "ann") is None


async def test_one_of_100_concurrent_takers_gets_the_confirmation(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation())
    taken = await asyncio.gather(*(confirmations.take("t1", "s1", "ann") for _ in range(100)))
    assert [each for each in taken if each is not None] == [confirmation()]


@pytest.mark.parametrize("wrong", [("t2", "s1", "ann"), ("t1", "s2", "ann"), ("t1", "s1", "bob"), ("t1", "s2", "bob")])
async def test_another_users_confirmation_is_neither_returned_nor_consumed(
    confirmations: ConfirmationStore, wrong: tuple[str, str, str]
) -> None:
    await confirmations.put(confirmation())
    assert await confirmations.take(*wrong) is None
    assert await confirmations.take("t1", "s1", "ann") == confirmation()


async def test_an_expired_confirmation_is_returned_too(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation(expires_ms=1))
    assert await confirmations.take("t1", "s1", "ann") == confirmation(expires_ms=1)


async def test_pending_confirmations_are_listed_oldest_first(confirmations: ConfirmationStore) -> None:
    put = [confirmation("t3", expires_ms=500), confirmation("t1", expires_ms=900), confirmation("t2", expires_ms=700)]
    for each in put:
        await confirmations.put(each)
    assert list(await confirmations.pending("s1", "ann", now_ms=100)) == put


async def test_pending_excludes_expired_taken_and_other_users_confirmations(confirmations: ConfirmationStore) -> None:
    waiting = confirmation("waiting", expires_ms=101)
    for each in (
        confirmation("expired", expires_ms=100),
        confirmation("taken"),
        confirmation("other session", session_id="s2"),
        confirmation("other user", user="bob"),
        waiting,
    ):
        await confirmations.put(each)
    await confirmations.take("taken", "s1", "ann")
    assert list(await confirmations.pending("s1", "ann", now_ms=100)) == [waiting]


async def test_pending_is_empty_without_confirmations(confirmations: ConfirmationStore) -> None:
    assert list(await confirmations.pending("s1", "ann", now_ms=0)) == []


async def test_sweep_deletes_expired_confirmations_and_counts_them(confirmations: ConfirmationStore) -> None:
    for number, expires_ms in enumerate((99, 100, 101)):
        await confirmations.put(confirmation(f"t{number}", session_id=f"s{number}", expires_ms=expires_ms))
    assert await confirmations.sweep(now_ms=100) == 2
    assert await confirmations.take("t1", "s1", "ann") is None
    assert await confirmations.take("t2", "s2", "ann") is not None


async def test_sweeping_an_empty_store_counts_zero(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation())
    assert await confirmations.sweep(now_ms=100) == 0


async def test_a_new_token_replaces_the_old_one(confirmations: ConfirmationStore) -> None:
    for each in (confirmation("t1"), confirmation("t2")):
        await confirmations.put(each)
    assert await confirmations.rehash("t1", "new", "s1", "ann") is True
    assert await confirmations.take("t1", "s1", "ann") is None
    renamed = replace(confirmation("t1"), token_hash="new")
    assert list(await confirmations.pending("s1", "ann", now_ms=0)) == [renamed, confirmation("t2")]
    assert await confirmations.take("new", "s1", "ann") == renamed


@pytest.mark.parametrize("wrong", [("other", "s1", "ann"), ("t1", "s2", "ann"), ("t1", "s1", "bob")])
async def test_the_token_of_a_missing_confirmation_is_not_replaced(
    confirmations: ConfirmationStore, wrong: tuple[str, str, str]
) -> None:
    await confirmations.put(confirmation())
    old, session_id, user = wrong
    assert await confirmations.rehash(old, "new", session_id, user) is False
    assert await confirmations.take("new", "s1", "ann") is None
    assert await confirmations.take("t1", "s1", "ann") == confirmation()


async def test_a_token_is_replaced_only_once(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation())
    replaced = await asyncio.gather(*(confirmations.rehash("t1", f"new{n}", "s1", "ann") for n in range(20)))
    assert replaced.count(True) == 1


async def test_the_confirmations_of_a_user_are_cleared(confirmations: ConfirmationStore) -> None:
    await confirmations.put(confirmation("t1"))
    await confirmations.put(confirmation("t2", session_id="s2"))
    await confirmations.put(confirmation("t3", user="bob"))
    assert await confirmations.clear("ann") == 2
    assert await confirmations.take("t1", "s1", "ann") is None
    assert await confirmations.take("t3", "s1", "bob") is not None
