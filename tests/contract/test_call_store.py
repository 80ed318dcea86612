"""The contract of the call store, on which the gate relies to know whether a call has run before."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon.storage.base import CALLS_KEPT_PER_SESSION, CallRecord, CallStore

pytestmark = pytest.mark.real_time


def record(
    id: str,
    provider_key: str | None = None,
    hash_key: str | None = None,
    *,
    session_id: str = "s1",
    started_ms: int = 1_000,
    result: bytes | None = None,
) -> CallRecord:
    return CallRecord(
        id=id,
        session_id=session_id,
        provider_key=provider_key,
        hash_key=hash_key,
        fingerprint="f" * 64,
        tool="set_reminder",
        turn=3,
        started_ms=started_ms,
        lease_until_ms=started_ms + 60_000,
        result=result,
    )


def finished(started: CallRecord, result: bytes = b'{"ok":true}') -> CallRecord:
    return replace(started, result=result)


async def test_an_unknown_call_is_not_found(calls: CallStore) -> None:
    assert await calls.find("s1", "p1", "h1") is None


@pytest.mark.parametrize("keys", [("p1", None), (None, "h1"), ("p1", "h1"), ("p1", "other"), ("other", "h1")])
async def test_a_started_call_is_found_by_either_key(calls: CallStore, keys: tuple[str | None, str | None]) -> None:
    started = record("a", "p1", "h1")
    await calls.start(started)
    assert await calls.find("s1", *keys) == started


async def test_a_provider_key_is_never_mistaken_for_a_hash_key(calls: CallStore) -> None:
    await calls.start(record("a", "same", None))
    assert await calls.find("s1", None, "same") is None


async def test_without_a_key_nothing_is_found(calls: CallStore) -> None:
    await calls.start(record("a"))
    assert await calls.find("s1", None, None) is None


async def test_the_newest_of_two_records_with_a_key_is_found(calls: CallStore) -> None:
    newer = record("b", None, "h1", started_ms=2_000)
    await calls.start(newer)
    await calls.start(record("a", "p1", None, started_ms=1_000))
    assert await calls.find("s1", "p1", "h1") == newer


async def test_sessions_are_isolated(calls: CallStore) -> None:
    await calls.start(record("a", "p1", "h1"))
    assert await calls.find("s2", "p1", "h1") is None
    assert await calls.start(record("b", "p1", "h1", session_id="s2")) is None


@pytest.mark.parametrize("keys", [("p1", "h1"), ("p1", None), ("p1", "free"), (None, "h1"), ("free", "h1")])
async def test_a_taken_key_returns_the_conflicting_record(
    calls: CallStore, keys: tuple[str | None, str | None]
) -> None:
    first = record("a", "p1", "h1")
    await calls.start(first)
    assert await calls.start(record("b", *keys)) == first


async def test_a_refused_start_reserves_no_key(calls: CallStore) -> None:
    await calls.start(record("a", "p1", "h1"))
    await calls.start(record("b", "p2", "h1"))
    assert await calls.find("s1", "p2", None) is None


async def test_a_conflicting_finished_call_is_returned_with_its_result(calls: CallStore) -> None:
    first = record("a", "p1", "h1")
    await calls.start(first)
    await calls.finish(finished(first))
    assert await calls.start(record("b", "p1", "h1")) == finished(first)


async def test_one_record_cannot_start_twice(calls: CallStore) -> None:
    keyless = record("a")
    await calls.start(keyless)
    assert await calls.start(keyless) == keyless


async def test_one_of_200_starts_with_the_same_key_wins(calls: CallStore) -> None:
    records = [record(f"id{number}", "p1", f"h{number}") for number in range(200)]
    answers = await asyncio.gather(*(calls.start(each) for each in records))
    winner = records[answers.index(None)]
    assert [answer for answer in answers if answer is not None] == [winner] * 199


async def test_no_two_winners_of_200_starts_with_crossed_keys_share_a_key(calls: CallStore) -> None:
    records = [record(f"id{number}", f"p{number % 20}", f"h{number % 30}") for number in range(200)]
    answers = await asyncio.gather(*(calls.start(each) for each in records))
    winners = [each for each, answer in zip(records, answers, strict=True) if answer is None]
    assert len({each.provider_key for each in winners}) == len({each.hash_key for each in winners}) == len(winners) > 0
    for each, answer in zip(records, answers, strict=True):
        if answer is not None:
            assert answer in winners
            assert answer.provider_key == each.provider_key or answer.hash_key == each.hash_key


async def test_finish_adds_the_result(calls: CallStore) -> None:
    started = record("a", "p1", "h1")
    await calls.start(started)
    await calls.finish(finished(started, b"\x00\xff"))
    assert await calls.find("s1", "p1", None) == finished(started, b"\x00\xff")


async def test_finish_without_start_stores_the_record(calls: CallStore) -> None:
    read = record("a", "p1", "h1", result=b"{}")
    await calls.finish(read)
    assert await calls.find("s1", None, "h1") == read


@pytest.mark.parametrize("keys", [("p1", "h1"), ("p1", "free"), ("free", "h1")])
async def test_finish_does_not_overwrite_another_record_with_the_key(calls: CallStore, keys: tuple[str, str]) -> None:
    first = record("a", "p1", "h1", result=b"first")
    await calls.finish(first)
    await calls.finish(record("b", *keys, started_ms=2_000, result=b"second"))
    assert await calls.find("s1", *keys) == first


async def test_restart_replaces_an_unfinished_record(calls: CallStore) -> None:
    old, new = record("a", "p1", "h1"), record("b", "p2", "h1", started_ms=90_000)
    await calls.start(old)
    assert await calls.restart(old, new) is True
    assert await calls.find("s1", "p2", "h1") == new
    assert await calls.find("s1", "p1", None) is None


async def test_one_of_50_restarts_of_a_record_wins(calls: CallStore) -> None:
    old = record("a", "p1", "h1")
    await calls.start(old)
    successors = [record(f"b{number}", "p1", "h1", started_ms=90_000) for number in range(50)]
    answers = await asyncio.gather(*(calls.restart(old, new) for new in successors))
    assert answers.count(True) == 1
    assert await calls.find("s1", "p1", "h1") == successors[answers.index(True)]


async def test_one_of_several_restarts_that_keep_the_id_wins(calls: CallStore) -> None:
    old = record("a", "p1", "h1")
    await calls.start(old)
    again = record("a", "p1", "h1", started_ms=90_000)
    answers = await asyncio.gather(*(calls.restart(old, again) for _ in range(5)))
    assert sorted(answers) == [False, False, False, False, True]


async def test_a_finished_record_is_not_restarted(calls: CallStore) -> None:
    old = record("a", "p1", "h1")
    await calls.start(old)
    await calls.finish(finished(old))
    assert await calls.restart(old, record("b", "p1", "h1")) is False
    assert await calls.find("s1", "p1", "h1") == finished(old)


async def test_a_missing_record_is_not_restarted(calls: CallStore) -> None:
    assert await calls.restart(record("a", "p1", "h1"), record("b", "p1", "h1")) is False
    assert await calls.find("s1", "p1", "h1") is None


async def test_restart_does_not_take_over_the_key_of_a_third_record(calls: CallStore) -> None:
    old, third = record("a", "p1", "h1"), record("c", "p2", "h2")
    await calls.start(old)
    await calls.start(third)
    assert await calls.restart(old, record("b", "p2", "h1", started_ms=90_000)) is False
    assert await calls.find("s1", "p1", "h1") == old
    assert await calls.find("s1", "p2", None) == third


async def test_a_late_result_of_a_replaced_run_does_not_affect_its_successor(calls: CallStore) -> None:
    old, new = record("a", "p1", "h1"), record("b", "p1", "h1", started_ms=90_000)
    await calls.start(old)
    await calls.restart(old, new)
    await calls.finish(finished(old))
    assert await calls.find("s1", "p1", "h1") == new


async def test_the_newest_calls_are_kept_and_the_oldest_are_dropped(calls: CallStore) -> None:
    records = [record(f"id{n}", f"p{n}", f"h{n}", started_ms=n, result=b"{}") for n in range(400)]
    for each in records:
        await calls.finish(each)
    kept = [each for each in records if await calls.find("s1", each.provider_key, each.hash_key) == each]
    assert kept == records[-len(kept) :]
    assert CALLS_KEPT_PER_SESSION <= len(kept) <= 2 * CALLS_KEPT_PER_SESSION


async def test_an_unfinished_call_is_never_dropped(calls: CallStore) -> None:
    unfinished = record("old", "p-old", "h-old", started_ms=0)
    await calls.start(unfinished)
    for n in range(300):
        await calls.finish(record(f"id{n}", f"p{n}", f"h{n}", started_ms=n + 1, result=b"{}"))
    assert await calls.find("s1", "p-old", None) == unfinished


async def test_old_calls_are_deleted_in_every_session_and_their_keys_become_free(calls: CallStore) -> None:
    old = [record(f"old{n}", "p1", "h1", session_id=f"s{n}", started_ms=99) for n in range(1_003)]
    kept = record("new", "p2", "h2", started_ms=100)
    for each in (*old, kept):
        await calls.start(each)
    assert await calls.delete_before(100) == 1_003
    assert await calls.find("s1", "p2", None) == kept
    assert await calls.start(record("again", "p1", "h1")) is None


async def test_renewing_a_run_changes_only_its_lease(calls: CallStore) -> None:
    one, two, other = record("a", "p1", "h1"), record("b", "p2", "h2", session_id="s2"), record("c", "p3", "h3")
    for each in (one, two, other):
        await calls.start(each)
    await calls.renew([one, two], 99_000)
    assert (
        await calls.find("s1", "p1", None) == await calls.find("s1", None, "h1") == replace(one, lease_until_ms=99_000)
    )
    assert await calls.find("s2", "p2", None) == replace(two, lease_until_ms=99_000)
    assert await calls.find("s1", "p3", None) == other


async def test_a_finished_or_deleted_run_is_not_renewed(calls: CallStore) -> None:
    started = record("a", "p1", "h1")
    await calls.start(started)
    await calls.finish(finished(started))
    await calls.renew([started, record("gone", "p9", "h9"), record("gone", "p9", "h9", session_id="s9")], 99_000)
    assert await calls.find("s1", "p1", "h1") == finished(started)
    assert await calls.find("s1", "p9", "h9") is None


async def test_a_renewed_run_is_not_restarted(calls: CallStore) -> None:
    old = record("a", "p1", "h1")
    await calls.start(old)
    await calls.renew([old], 99_000)
    assert await calls.restart(old, record("b", "p1", "h1")) is False


async def test_the_unfinished_runs_of_a_session_are_listed_oldest_first(calls: CallStore) -> None:
    newer, older = record("b", "p2", "h2", started_ms=2_000), record("a", "p1", "h1")
    for each in (newer, older, record("c", "p3", "h3", session_id="s2")):
        await calls.start(each)
    await calls.finish(record("d", "p4", "h4", result=b"{}"))
    assert list(await calls.unfinished("s1")) == [older, newer]
    assert list(await calls.unfinished("nobody")) == []


async def test_the_records_of_sessions_are_cleared(calls: CallStore) -> None:
    for number, session in enumerate(("s1", "s1", "s2", "s3")):
        await calls.finish(finished(record(f"c{number}", f"p{number}", session_id=session)))
    assert await calls.clear({"s1", "s2", "unknown"}) == 3
    assert await calls.find("s1", "p0", None) is None
    assert await calls.find("s3", "p3", None) is not None
    assert await calls.clear(()) == 0
