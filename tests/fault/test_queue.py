"""Typed messages that are queued behind the current answer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fault.cuts import Listener
from tests.fault.servers import Client, Servers, leaving, recital, servers_in, story

pytestmark = pytest.mark.real_time


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


async def type_three(client: Client) -> None:
    for text in ("tell a 5", "tell b 1", "tell c 1"):
        await client.send("text_message", text=text)
    while len(client.waiting) < 2:
        await client.hear()


async def test_messages_typed_during_an_answer_are_answered_after_it_in_order(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await type_three(client)
        assert client.waiting == ["tell b 1", "tell c 1"]
        await client.rest_for_good()
        asked = ["tell a 5", "tell b 1", "tell c 1"]
        assert client.shown == [pair for text in asked for pair in (("user", text), ("assistant", story(text)))]
        assert not client.every("error")


async def test_a_queued_message_can_be_withdrawn(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await type_three(client)
        first = client.every("queued")[-1]["messages"][0]
        await client.send("unqueue", id=first["id"])
        await client.rest_for_good()
        assert [text for role, text in client.shown if role == "user"] == ["tell a 5", "tell c 1"]


async def test_an_interruption_empties_the_queue(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        await type_three(client)
        await client.send("interrupt")
        await client.rest_for_good()
        assert client.waiting == []
        assert [text for role, text in client.shown if role == "user"] == ["tell a 5"]


async def test_messages_beyond_the_queue_limit_are_refused_and_the_others_kept(servers: Servers) -> None:
    client = await Client().connect(await servers.start())
    async with leaving([client]):
        for number in range(8):
            await client.send("text_message", text=f"tell s{number} 3")
        await client.rest_for_good()
        assert [error["code"] for error in client.every("error")] == ["busy", "busy"]
        assert [text for role, text in client.shown if role == "user"] == [f"tell s{number} 3" for number in range(6)]


async def test_queued_messages_survive_a_server_crash(servers: Servers) -> None:
    victim, heir = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(victim)
    async with leaving([client]):
        await type_three(client)
        await victim.kill()
        await client.hear_out()
        await client.resume(heir)
        await client.until("history")
        await client.rest_for_good()
        asked = ["tell a 5", "tell b 1", "tell c 1"]
        assert client.shown == [pair for text in asked for pair in (("user", text), ("assistant", story(text)))]


async def test_in_a_call_queued_messages_are_answered_once_the_answer_was_heard(servers: Servers) -> None:
    listener = await Listener().open(await servers.start())
    async with leaving([listener]):
        await listener.send("text_message", text="recite 5")
        await listener.until("transcript")
        await listener.send("text_message", text="recite 3")
        await listener.until("queued")
        await listener.listen_out(answers=2)
        assert listener.heard == [recital("recite 5").strip(), recital("recite 3").strip()]
