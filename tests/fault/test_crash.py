"""kill -9 at any moment of a turn: whatever a client has seen as final is stored, and the next server continues."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from antiphon.models.text_live import text_factory
from antiphon.protocol import server_messages as s
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from tests.fakes import calls
from tests.fakes.gates import Counted, make_action
from tests.fakes.paced import Paced
from tests.fakes.scripted import ScriptedModel
from tests.fault.servers import LOOK_FIRST, Client, Served, Servers, dangling_calls, leaving, servers_in, story

pytestmark = pytest.mark.real_time


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


def finals(client: Client) -> list[str]:
    return [message["text"] for message in client.every("transcript") if message["is_final"]]


async def come_back(client: Client, heir: Served, *, wait: bool = True) -> None:
    """Resumes, and waits for any answers that the crashed server did not give."""
    await client.resume(heir)
    assert client.session["resumed"] is True
    await client.until("history")
    if wait:
        await client.rest_for_good()


@pytest.mark.parametrize("moment", ["transcript", "tool_call", "tool_result", "response_chunk", "response"])
async def test_a_turn_survives_a_crash_of_its_server(servers: Servers, moment: str) -> None:
    asked = f"{LOOK_FIRST}tell s 5"
    victim, heir = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(victim)
    async with leaving([client]):
        await client.send("text_message", text=asked)
        await client.until(moment)
        await victim.kill()
        assert await client.hear_out() is None
        left = servers.turns(client.conversation_id)
        assert [turn["text"] for turn in left if turn["role"] == "user"] == finals(client) == [asked]
        assert dangling_calls(left) == []
        await come_back(client, heir)
        await client.ask("tell t 1")
        questions = [asked, "tell t 1"]
        assert client.shown == [pair for text in questions for pair in (("user", text), ("assistant", story(text)))]
        assert client.shown == servers.words(client.conversation_id)
        assert len(client.numbers) == len(set(client.numbers))
        assert dangling_calls(servers.turns(client.conversation_id)) == []


async def test_sessions_survive_successive_server_crashes(servers: Servers) -> None:
    """Each server is killed at a random moment, with sessions at all points of their turns."""
    rng = Random(3)
    clients = [Client() for _ in range(10)]
    served = await servers.start()
    async with leaving(clients):
        await asyncio.gather(*(client.connect(served) for client in clients))
        await asyncio.gather(*(client.ask(f"tell s{place} 1") for place, client in enumerate(clients)))
        for death in range(3):
            # If an earlier turn is still being answered, this one waits for it.
            for place, client in enumerate(clients):
                await client.send("text_message", text=f"tell d{death}s{place} {rng.randint(1, 12)}")
            hearing = asyncio.gather(*(client.hear_out() for client in clients))
            heir, _ = await asyncio.gather(servers.start(), asyncio.sleep(rng.uniform(0.1, 0.8)))
            await served.kill()
            await hearing
            served = heir
            for client in clients:
                assert set(finals(client)) <= {text for _, text in servers.words(client.conversation_id)}
            await asyncio.gather(*(come_back(client, heir, wait=death == 2) for client in clients))
        for client in clients:
            said = servers.words(client.conversation_id)
            assert said == [pair for _, text in said[::2] for pair in (("user", text), ("assistant", story(text)))]
            assert client.shown == said
            assert len(client.numbers) == len(set(client.numbers))


async def test_actions_of_a_turn_are_not_repeated_when_another_server_answers_it() -> None:
    handler, database = Counted(), MemoryDatabase()
    book = make_action("book", handler)

    def serve(owner: str) -> calls.Server:
        model = Paced(ScriptedModel([[ToolCall(None, "book", {})], "It is booked."]))
        return calls.Server(book, models={Mode.TEXT: text_factory(model)}, database=database, owner=owner)

    one, two = serve("one"), serve("two")
    try:
        client = await calls.Client(one).enter()
        await client.write("book it", seconds=0.35)
        assert client.every(s.ToolResult)
        assert not client.every(s.Response)
        await one.aclose()
        back = await calls.Client(two).enter(resume=client.handle, last_n=client.last_n)
        await back.settle(1)
        assert back.last(s.ToolResult).ok
        assert back.last(s.Response).text.strip() == "It is booked."
        assert handler.runs == 1
    finally:
        await two.aclose()
