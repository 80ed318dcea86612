"""Two hundred people in calls with two nodes on one Postgres, and a thousand reminders. `make soak` runs it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import httpx2
import pytest

from tests.fakes.postgres import PostgresServer
from tests.fault.nodes import Nodes, Person, ask_until_answered, live_through
from tests.fault.ringing import connect_stored, hear_all, move, rung, set_reminders
from tests.fault.servers import Client, Servers, leaving, servers_in
from tests.fault.test_two_nodes import kill_one, restart_one_after_the_other
from tests.wire.served import serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(900)]

PEOPLE = 200
CLOCKS_MS = (5_000, -5_000)
OUTAGE_S = 10


@pytest.fixture
async def servers(tmp_path: Path, postgres_url: str) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path, postgres_url) as servers:
        yield servers


def tell(people: list[Person] | tuple[Person, ...]) -> None:
    taken = sorted(each for person in people for each in person.resumed_in_s)
    turns = sum(len(person.asked) for person in people)
    print(f"{turns} turns of {len(people)} people; {len(taken)} sessions resumed", end="")
    print(f", the median after {taken[len(taken) // 2]:.2f} s, the last after {taken[-1]:.2f} s" if taken else "")


async def test_a_rolling_restart_with_two_hundred_calls(servers: Servers) -> None:
    nodes = Nodes(servers)
    await asyncio.gather(*(nodes.start(clock_ms) for clock_ms in CLOCKS_MS))
    tell([*await live_through(nodes, PEOPLE, lambda: restart_one_after_the_other(nodes), after_s=2)])
    assert "session_failed" not in servers.log


async def test_a_node_with_half_of_two_hundred_calls_is_killed(servers: Servers) -> None:
    nodes = Nodes(servers)
    await asyncio.gather(*(nodes.start(clock_ms) for clock_ms in CLOCKS_MS))
    people = await live_through(nodes, PEOPLE, lambda: kill_one(nodes), after_s=2)
    tell([*people])
    assert max(taken for person in people for taken in person.resumed_in_s) < 5


async def test_two_hundred_sessions_while_the_database_does_not_answer(
    servers: Servers, postgres: PostgresServer
) -> None:
    up = await asyncio.gather(*(servers.start(clock_ms=clock_ms) for clock_ms in CLOCKS_MS))
    clients = await asyncio.gather(*(Client().connect(up[number % 2]) for number in range(PEOPLE)))
    async with leaving(clients):
        await asyncio.gather(*(client.ask("tell before 1") for client in clients))
        await asyncio.to_thread(postgres.freeze)
        try:
            asking = [asyncio.create_task(ask_until_answered(each, f"tell n{n} 1")) for n, each in enumerate(clients)]
            await asyncio.sleep(OUTAGE_S)
            assert not any(task.done() for task in asking)
        finally:
            await asyncio.to_thread(postgres.thaw)
        await asyncio.gather(*asking)
        for client in clients:
            assert client.shown == servers.words(client.conversation_id)


def test_a_server_says_that_its_database_does_not_answer(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.make_database()
    with serve(tmp_path, storage={"url": url}) as served:
        assert httpx2.get(f"{served.http}/ready").status_code == 200
        postgres.freeze()
        try:
            # The result of a check is reused for a second.
            time.sleep(1.5)
            refused = httpx2.get(f"{served.http}/ready", timeout=20)
        finally:
            postgres.thaw()
        assert refused.status_code == 503
        assert "database" in refused.text
        for _ in range(100):
            if httpx2.get(f"{served.http}/ready", timeout=20).status_code == 200:
                break
        assert httpx2.get(f"{served.http}/ready", timeout=20).status_code == 200


@pytest.mark.parametrize("seed", range(3))
async def test_a_thousand_reminders_ring_once_while_nodes_die(servers: Servers, seed: int) -> None:
    rng = Random(seed)
    staying = await servers.start(clock_ms=CLOCKS_MS[0])
    served = await servers.start(clock_ms=CLOCKS_MS[1])
    moves, stays = await connect_stored(served), await connect_stored(staying)
    async with leaving([moves, stays]):
        rings = await set_reminders(servers, 1_000, 20.0, seed)
        hearing_out = asyncio.create_task(hear_all(stays, rings, 3))
        for _ in range(4):
            heir, _ = await asyncio.gather(servers.start(clock_ms=CLOCKS_MS[1]), asyncio.sleep(rng.uniform(1, 4)))
            hearing = asyncio.create_task(move(moves, heir))
            await asyncio.sleep(rng.uniform(0.0, 0.5))
            await served.kill()
            await hearing
            served = heir
        await asyncio.gather(hear_all(moves, set(), 3), hearing_out)
        assert rung(stays) == dict.fromkeys(rings, 1)
        assert set(rung(moves).values()) <= {1}
        assert rung(moves).keys() <= rings
    assert servers.rows("SELECT count(*) FROM reminders") == [(0,)]
