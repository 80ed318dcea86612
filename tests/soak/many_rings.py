"""Servers that are killed one after another while two hundred reminders ring. `make soak` runs it."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.fault.ringing import connect_stored, hear_all, move, rung, set_reminders
from tests.fault.servers import leaving, servers_in

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]


@pytest.mark.parametrize("seed", range(10))
async def test_two_hundred_reminders_ring_once_over_successive_deaths(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    async with servers_in(tmp_path) as servers:
        # One more process shares the database, and has no client.
        served, _ = await asyncio.gather(servers.start(), servers.start())
        client = await connect_stored(served)
        async with leaving([client]):
            rings = await set_reminders(servers, 200, 6.0, seed)
            for _ in range(4):
                heir, _ = await asyncio.gather(servers.start(), asyncio.sleep(rng.uniform(0.2, 1.5)))
                hearing = asyncio.create_task(move(client, heir))
                await asyncio.sleep(rng.uniform(0.0, 0.5))
                await served.kill()
                await hearing
                served = heir
            await hear_all(client, rings)
            assert rung(client) == dict.fromkeys(rings, 1)
            assert len(client.numbers) == len(set(client.numbers))
        assert "session_failed" not in servers.log
