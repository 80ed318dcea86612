"""Two nodes on one Postgres: whatever happens to one of them, the conversations go on. `make soak` has 200 of them."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.postgres import PostgresServer
from tests.fault.nodes import Nodes, ask_until_answered, live_through
from tests.fault.ringing import connect_stored, hear_all, move, rung, set_reminders
from tests.fault.servers import Client, Servers, leaving, servers_in, story

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(300)]

PEOPLE = 12


@pytest.fixture
async def servers(tmp_path: Path, postgres_url: str) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path, postgres_url) as servers:
        yield servers


async def restart_one_after_the_other(nodes: Nodes) -> None:
    for old in list(nodes.up):
        await nodes.start()
        nodes.up.remove(old)
        old.terminate()
        assert await asyncio.to_thread(old.process.wait, 60) == 0


async def kill_one(nodes: Nodes) -> None:
    victim = nodes.up.pop(0)
    await victim.kill()


async def test_a_rolling_restart_loses_no_turn_and_doubles_no_action(servers: Servers) -> None:
    nodes = Nodes(servers)
    await asyncio.gather(nodes.start(), nodes.start())
    people = await live_through(nodes, PEOPLE, lambda: restart_one_after_the_other(nodes))
    assert any(person.resumed_in_s for person in people)
    assert "session_failed" not in servers.log


async def test_the_sessions_of_a_killed_node_are_resumed_on_the_other(servers: Servers) -> None:
    nodes = Nodes(servers)
    # Their clocks are ten seconds apart.
    await asyncio.gather(nodes.start(clock_ms=5_000), nodes.start(clock_ms=-5_000))
    people = await live_through(nodes, PEOPLE, lambda: kill_one(nodes))
    assert any(person.resumed_in_s for person in people)
    assert max(taken for person in people for taken in person.resumed_in_s) < 5


async def test_a_node_that_was_stopped_for_longer_than_its_lease_is_fenced(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(lease_ms=1_000), servers.start(lease_ms=1_000, clock_ms=5_000))
    client = await Client().connect(one)
    await client.ask("tell before 1")
    await client.send("text_message", text="tell s 12")
    await client.hear_some(4)
    one.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(2)
    second = await client.twin().resume(two)
    async with leaving([second]):
        assert second.session["resumed"] is True
        await second.rest_for_good()
        one.process.send_signal(signal.SIGCONT)
        assert await client.hear_out() == 4409
        await second.ask("tell after 1")
        told = [story(text) for text in ("tell before 1", "tell s 12", "tell after 1")]
        assert [text for who, text in servers.words(second.conversation_id) if who == "assistant"] == told
        assert second.shown == servers.words(second.conversation_id)


async def test_reminders_ring_once_over_two_nodes_of_which_one_is_killed(servers: Servers) -> None:
    victim, heir = await asyncio.gather(servers.start(clock_ms=-5_000), servers.start(clock_ms=5_000))
    moving, staying = await connect_stored(victim), await connect_stored(heir)
    async with leaving([moving, staying]):
        rings = await set_reminders(servers, 100, 8.0, seed=2)
        hearing = asyncio.create_task(move(moving, heir))
        await asyncio.sleep(2)
        await victim.kill()
        await hearing
        await hear_all(staying, rings)
        await hear_all(moving, set(), 0.5)
        assert rung(staying) == dict.fromkeys(rings, 1)
        assert set(rung(moving).values()) <= {1}
    assert servers.rows("SELECT count(*) FROM reminders") == [(0,)]


async def test_what_is_typed_in_one_session_is_shown_in_another_on_the_other_node(servers: Servers) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    here = await Client().connect(one)
    await here.ask("tell a 1")
    there = await Client().connect(two, conversation_id=here.conversation_id)
    async with leaving([here, there]):
        await there.until("history")
        await here.ask("tell b 2")
        while len(there.shown) < 4:
            await there.until("history")
        assert there.shown == here.shown
        await there.ask("tell c 1")
        while len(here.shown) < 6:
            await here.until("history")
        assert here.shown == there.shown == servers.words(here.conversation_id)


async def test_calls_stay_up_while_the_database_is_away(servers: Servers, postgres: PostgresServer) -> None:
    served = await servers.start()
    clients = [await Client().connect(served) for _ in range(4)]
    async with leaving(clients):
        await asyncio.gather(*(client.ask(f"tell s{number} 1") for number, client in enumerate(clients)))
        await asyncio.to_thread(postgres.stop, signal.SIGQUIT)
        try:
            before = [list(client.shown) for client in clients]
            for client in clients:
                await client.send("text_message", text="tell lost 1")
                error = await client.until("error", code="unavailable")
                assert error["retryable"]
                await client.send("ping", t=1)
                await client.until("pong")
            assert [client.shown for client in clients] == before
        finally:
            # In this thread: the server ends with the thread that has started it.
            postgres.start()
        await asyncio.gather(*(ask_until_answered(client, "tell again 1") for client in clients))
        for client in clients:
            assert client.shown == servers.words(client.conversation_id)
            assert ("user", "tell lost 1") not in client.shown
