"""Answers cut by a disconnect at any moment, and continued by the same server or another."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.fault.cuts import cut_and_come_back, faults_of
from tests.fault.servers import servers_in

pytestmark = pytest.mark.real_time


async def run_cuts(folder: Path, count: int, seed: int, at_once: int = 20, model: str = "storyteller") -> list[str]:
    rng, faults, turns = Random(seed), list[str](), asyncio.Semaphore(at_once)
    async with servers_in(folder) as servers:
        places = await asyncio.gather(servers.start(model=model), servers.start(model=model))

        async def cut(seed: int) -> None:
            async with turns:
                faults.extend(faults_of(await cut_and_come_back(Random(seed), places)))

        await asyncio.gather(*(cut(rng.getrandbits(32)) for _ in range(count)))
        assert "session_failed" not in servers.log
        assert "Traceback" not in servers.log
    return faults


@pytest.mark.timeout(120)
async def test_an_answer_cut_by_a_disconnect_is_sent_and_heard_once(tmp_path: Path) -> None:
    assert await run_cuts(tmp_path, 30, seed=5) == []
