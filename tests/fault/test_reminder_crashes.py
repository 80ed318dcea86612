"""kill -9 at any moment of a ring: no reminder is lost, and none is told twice to a client."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from tests.fault.ringing import connect_stored, hear_all, move, rung, set_reminders
from tests.fault.servers import DIES_AFTER, Servers, leaving, servers_in

pytestmark = pytest.mark.real_time


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


@pytest.mark.parametrize("moment", ["ring:9", "deliver:3"])
async def test_a_server_that_dies_right_after_a_write_loses_and_doubles_nothing(servers: Servers, moment: str) -> None:
    victim, heir = await asyncio.gather(servers.start(model=f"{DIES_AFTER}{moment}"), servers.start())
    client = await connect_stored(victim)
    async with leaving([client]):
        rings = await set_reminders(servers, 40, 0.8, seed=1)
        await move(client, heir)
        await hear_all(client, rings)
        assert rung(client) == dict.fromkeys(rings, 1)
        assert len(client.numbers) == len(set(client.numbers))


async def test_two_hundred_reminders_ring_once_over_two_processes_of_which_one_is_killed(servers: Servers) -> None:
    rng = Random(5)
    victim, heir = await asyncio.gather(servers.start(), servers.start())
    moving, staying = await connect_stored(victim), await connect_stored(heir)
    async with leaving([moving, staying]):
        rings = await set_reminders(servers, 200, 2.0, seed=2)
        hearing = asyncio.create_task(move(moving, heir))
        await asyncio.sleep(0.5 + rng.uniform(0.3, 1.5))
        await victim.kill()
        await hearing
        await hear_all(staying, rings)
        await hear_all(moving, set(), 0.5)
        assert rung(staying) == dict.fromkeys(rings, 1)
        assert max(rung(moving).values()) == 1
        assert rung(moving).keys() <= rings
    left = servers.rows("SELECT count(*) FROM reminders")
    assert left == [(0,)]
