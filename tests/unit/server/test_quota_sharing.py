"""Limits of users and addresses hold for several processes together."""

import asyncio

import pytest

from antiphon.security.quota import Account, Kind, Limit, Quota, Rate
from antiphon.server.quota_sharing import SHARE_EVERY_S, share_quota
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.memory.limits import MemoryLimitStore
from tests.fakes.calls import LoopClock

LIMITS = {Kind.CONNECTION: Limit(address=Rate(per_s=0.01, burst=20))}
ANN = Account(address="192.0.2.1")


def take_all(quota: Quota) -> int:
    """Takes as often as it is admitted, and returns how often."""
    taken = 0
    while quota.take(Kind.CONNECTION, ANN, 1, LoopClock().monotonic()) == 0:
        taken += 1
    return taken


async def test_two_processes_admit_as_much_as_one_after_they_have_shared() -> None:
    one, two, store = Quota(LIMITS), Quota(LIMITS), MemoryLimitStore(LoopClock().monotonic)
    sharing = [asyncio.create_task(share_quota(each, store, LoopClock())) for each in (one, two)]
    try:
        assert take_all(one) == 20
        two.take(Kind.CONNECTION, ANN, 4, LoopClock().monotonic())
        await asyncio.sleep(2 * SHARE_EVERY_S)
        assert take_all(two) == 0
    finally:
        for task in sharing:
            task.cancel()
        await asyncio.gather(*sharing, return_exceptions=True)


async def test_limits_hold_in_each_process_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    quota, store = Quota(LIMITS), MemoryLimitStore(LoopClock().monotonic)
    use, is_away = store.use, True

    async def use_or_fail(uses_s: dict[str, float]) -> object:
        if is_away:
            raise StoreUnavailable("It is away.")
        return await use(uses_s)

    monkeypatch.setattr(store, "use", use_or_fail)
    sharing = asyncio.create_task(share_quota(quota, store, LoopClock()))
    try:
        assert take_all(quota) == 20
        await asyncio.sleep(5 * SHARE_EVERY_S)
        assert take_all(quota) == 0
        is_away = False
        await asyncio.sleep(2 * SHARE_EVERY_S)
        [full_in_s] = (await use({"connection:address:192.0.2.1": 0.0})).values()
        assert full_in_s == pytest.approx(2_000, abs=50)
    finally:
        sharing.cancel()
        await asyncio.gather(sharing, return_exceptions=True)
