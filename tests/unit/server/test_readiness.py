"""What `/ready` looks at, on the virtual clock."""

import asyncio

import pytest
from structlog.testing import capture_logs

from antiphon.server.health import CHECK_S, KEEP_S, Readiness
from antiphon.server.refusals import STOPPING
from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable


class Store:
    """A store whose check takes a given time, or fails."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.reason: str | None = None
        self.checks = 0

    async def check(self) -> None:
        self.checks += 1
        await asyncio.sleep(self.seconds)
        if self.reason is not None:
            raise StoreUnavailable(self.reason)


async def test_a_store_that_can_be_written_is_no_problem() -> None:
    assert await Readiness(Store().check, asyncio.Event()).find_problems() == []


async def test_many_readiness_requests_share_one_store_check() -> None:
    store = Store(0.1)
    readiness = Readiness(store.check, asyncio.Event())
    for _ in range(100):
        await asyncio.gather(*(readiness.find_problems() for _ in range(10)))
        await asyncio.sleep(KEEP_S / 100)
    assert store.checks <= 3


async def test_a_store_that_hangs_is_unavailable_after_the_deadline_and_is_not_asked_again_meanwhile() -> None:
    store = Store(60)
    readiness = Readiness(store.check, asyncio.Event())
    began_s = asyncio.get_running_loop().time()
    for _ in range(3):
        assert await readiness.find_problems() == [STORE_UNAVAILABLE]
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(3 * CHECK_S, abs=0.5)
    assert store.checks == 1
    await asyncio.sleep(60)
    store.seconds = 0
    assert await readiness.find_problems() == []


async def test_a_failure_and_its_recovery_are_each_logged_once() -> None:
    store = Store()
    store.reason = "The disk is full."
    readiness = Readiness(store.check, asyncio.Event())
    with capture_logs() as lines:
        for _ in range(5):
            assert await readiness.find_problems() == [STORE_UNAVAILABLE]
            await asyncio.sleep(KEEP_S * 2)
        store.reason = None
        assert await readiness.find_problems() == []
    assert [(line["event"], line.get("error")) for line in lines] == [
        ("store_unavailable", "The disk is full."),
        ("store_available", None),
    ]


async def test_a_server_that_stops_is_not_ready() -> None:
    stopping = asyncio.Event()
    readiness = Readiness(Store().check, stopping)
    stopping.set()
    assert await readiness.find_problems() == [STOPPING]
