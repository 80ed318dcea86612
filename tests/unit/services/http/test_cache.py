import asyncio

import pytest

from antiphon.authoring.testing import StillClock
from antiphon.services.http.cache import Cache


class Loads:
    def __init__(self) -> None:
        self.count = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> int:
        self.count += 1
        await self.gate.wait()
        return self.count


async def test_a_value_is_loaded_again_when_it_is_too_old() -> None:
    clock, loads = StillClock(), Loads()
    loads.gate.set()
    cache: Cache[int] = Cache(clock, max_size=10)
    assert await cache.get("k", 60, loads) == 1
    clock.advance(seconds=59)
    assert await cache.get("k", 60, loads) == 1
    clock.advance(seconds=2)
    assert await cache.get("k", 60, loads) == 2


async def test_who_stops_waiting_does_not_stop_the_request() -> None:
    """A spoken turn gives up after its budget; the next one finds the answer."""
    loads = Loads()
    cache: Cache[int] = Cache(StillClock(), max_size=10)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.8):
            await cache.get("k", 60, loads)
    loads.gate.set()
    assert await cache.get("k", 60, loads) == 1
    assert loads.count == 1


async def test_the_least_recently_used_value_makes_room() -> None:
    async def load() -> str:
        return "x"

    cache: Cache[str] = Cache(StillClock(), max_size=2)
    for key in ("a", "b", "a", "c"):
        await cache.get(key, 60, load)
    assert list(cache._known) == ["a", "c"]


async def test_values_are_measured() -> None:
    async def load() -> bytes:
        return b"x" * 60

    cache: Cache[bytes] = Cache(StillClock(), max_size=100, size_of=len)
    await cache.get("a", 60, load)
    await cache.get("b", 60, load)
    assert list(cache._known) == ["b"]
    assert cache._size == 60


async def test_a_value_that_is_larger_than_the_cache_is_returned_and_not_kept() -> None:
    async def load() -> bytes:
        return b"x" * 200

    cache: Cache[bytes] = Cache(StillClock(), max_size=100, size_of=len)
    assert len(await cache.get("a", 60, load)) == 200
    assert cache._size == 0


async def test_closing_stops_requests_that_nobody_waits_for() -> None:
    loads = Loads()
    cache: Cache[int] = Cache(StillClock(), max_size=10)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await cache.get("k", 60, loads)
    await cache.aclose()
    assert not cache._loading
