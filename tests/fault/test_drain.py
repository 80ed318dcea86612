"""A server is stopped while many people are talking to it, and another one takes over."""

import asyncio
from pathlib import Path

import pytest

from tests.fault.servers import RESTARTING, Client, Served, leaving, servers_in, story

pytestmark = pytest.mark.real_time

DRAIN_S = 2.0
CLIENTS = 50


async def begin(client: Client, served: Served, number: int) -> str:
    """Starts a session that is idle, in an answer that ends in time, or in one that is too long."""
    await client.connect(served)
    await client.ask(f"tell first{number} 1")
    asked = ["", f"tell short{number} 8", f"tell long{number} 40"][number % 3]
    if asked:
        await client.send("text_message", text=asked)
        await client.until("transcript")
        await client.hear_some(number % 5)
    return asked


async def test_fifty_drained_clients_continue_on_another_server_without_losing_a_turn(tmp_path: Path) -> None:
    clients = [Client() for _ in range(CLIENTS)]
    async with servers_in(tmp_path) as servers, leaving(clients):
        old, new = await asyncio.gather(servers.start(drain_s=DRAIN_S), servers.start())
        asked = await asyncio.gather(*(begin(client, old, number) for number, client in enumerate(clients)))
        old.terminate()
        assert await asyncio.gather(*(client.hear_out() for client in clients)) == [1012] * CLIENTS
        assert [[received["reason"] for received in client.every("go_away")] for client in clients] == [
            [RESTARTING]
        ] * CLIENTS
        seen = [list(client.shown) for client in clients]
        stored = [servers.words(client.conversation_id) for client in clients]
        assert stored == seen
        assert await asyncio.to_thread(old.process.wait, 10) == 0

        await asyncio.gather(*(client.resume(new) for client in clients))
        assert [client.session["resumed"] for client in clients] == [True] * CLIENTS
        await asyncio.gather(*(client.until("history") for client in clients))
        cut_off = [client for client in clients if seen[clients.index(client)][-1][0] == "user"]
        assert len(cut_off) == sum(text.startswith("tell long") for text in asked)
        await asyncio.gather(*(client.rest() for client in cut_off))
        await asyncio.gather(*(client.ask("tell last 1") for client in clients))
        for client, text in zip(clients, asked, strict=True):
            answers = [story(each) for who, each in client.shown if who == "user"]
            assert [each for who, each in client.shown if who == "assistant"] == answers
            assert len(answers) == (3 if text else 2)
            assert client.shown == servers.words(client.conversation_id)
            assert len(client.numbers) == len(set(client.numbers))


async def test_a_drained_client_gets_a_resume_handle(tmp_path: Path) -> None:
    async with servers_in(tmp_path) as servers:
        old, new = await asyncio.gather(servers.start(), servers.start())
        client = await Client().connect(old)
        async with leaving([client]):
            await client.send("text_message", text="tell s 40")
            await client.until("transcript")
            old.terminate()
            handle = (await client.until("go_away"))["resume"]
            assert handle == client.handle
            client.cut()
            await client.connect(new, resume=handle, last_n=client.last_n)
            assert client.session["resumed"] is True


async def test_a_client_that_connects_during_a_drain_is_sent_away_too(tmp_path: Path) -> None:
    async with servers_in(tmp_path) as servers:
        old, new = await asyncio.gather(servers.start(drain_s=4.0), servers.start())
        busy = await Client().connect(old)
        parked = await Client().connect(old)
        late = Client()
        async with leaving([busy, parked, late]):
            await parked.ask("tell s 1")
            await busy.send("text_message", text="tell s 60")
            await busy.until("transcript")
            parked.cut()
            old.terminate()
            await busy.until("go_away")
            await asyncio.gather(late.connect(old), parked.resume(old))
            for client in (late, parked):
                going = await client.until("go_away")
                assert 0 <= going["time_left_ms"] <= 4_000
                assert going["resume"] == client.handle
            parked.cut()
            await parked.resume(new)
            assert parked.session["resumed"] is True
