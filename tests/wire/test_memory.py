"""Sessions that come and go leave nothing behind."""

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from tests.wire.caller import call
from tests.wire.served import UNLIMITED, Served, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

SESSIONS: Final = 30
ROUNDS: Final = 3
MAX_GROWTH_BYTES: Final = 20 << 20
MAX_SESSION_BYTES: Final = 1 << 20
AT_ONCE: Final = 25
"""How many handshakes may be under way at the same time."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served"), limits=UNLIMITED) as served:
        yield served


async def hold_sessions(served: Served, count: int) -> int:
    """Opens `count` sessions, lets each have a turn, and closes them. Returns the server's size while all were open."""
    gate, everybody = asyncio.Semaphore(AT_ONCE), asyncio.Barrier(count + 1)

    async def attend() -> None:
        await gate.acquire()
        async with call(served.url, {"mode": "text"}) as caller:
            assert await caller.ask("What is 2 plus 3?") == "2 plus 3 is 5."
            gate.release()
            await everybody.wait()
            await everybody.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(attend())
        await everybody.wait()
        size = served.resident_bytes
        await everybody.wait()
    return size


async def hold_and_assert_nothing_is_left(served: Served, count: int) -> None:
    # The first sessions fill caches and pools, which belong to none of them.
    await hold_sessions(served, count // 10)
    empty = await served.steady_bytes(has_clients=False)
    full = await hold_sessions(served, count)
    first = await served.steady_bytes(has_clients=False)
    for _ in range(ROUNDS - 1):
        await hold_sessions(served, count)
    last = await served.steady_bytes(has_clients=False)
    assert last - first < MAX_GROWTH_BYTES
    assert (full - empty) / count < MAX_SESSION_BYTES
    assert served.failures == []


async def test_sessions_that_come_and_go_leave_nothing_behind(served: Served) -> None:
    """Three times 30 sessions. `make soak` opens three times 300."""
    await hold_and_assert_nothing_is_left(served, SESSIONS)
