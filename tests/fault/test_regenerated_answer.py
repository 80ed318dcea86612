"""An answer that a crashed server did not finish is given by the next, once, and no message is repeated."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fault.servers import LOOK_FIRST, Client, Servers, leaving, servers_in, story

pytestmark = pytest.mark.real_time


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


async def test_a_tool_result_is_spoken_once(servers: Servers) -> None:
    victim, heir = await asyncio.gather(servers.start(model="builtin"), servers.start(model="builtin"))
    client = await Client().connect(victim)
    async with leaving([client]):
        await client.send("text_message", text="what is 19 times 23")
        await client.until("tool_result")
        # The result is stored at almost the same moment as it is sent.
        await asyncio.sleep(0.03)
        await victim.kill()
        await client.hear_out()
        await client.resume(heir)
        await client.until("response")
        await client.until("state", state="idle")
        assert [message["text"] for message in client.every("response")] == ["19 times 23 is 437."]
        assert client.shown == [("user", "what is 19 times 23"), ("assistant", "19 times 23 is 437.")]
        for type in ("transcript", "tool_call", "tool_result"):
            assert len(client.every(type)) == 1


@pytest.mark.parametrize("moment", ["transcript", "tool_call", "response_chunk"])
async def test_a_turn_is_sent_once_whichever_server_answers_it(servers: Servers, moment: str) -> None:
    one, two = await asyncio.gather(servers.start(), servers.start())
    client = await Client().connect(one)
    async with leaving([client]):
        asked = f"{LOOK_FIRST}tell s 4"
        await client.send("text_message", text=asked)
        await client.until(moment)
        client.cut()
        await client.resume(two)
        await client.until("response")
        await client.until("state", state="idle")
        assert [message["text"] for message in client.every("transcript")] == [asked]
        [called], [result] = client.every("tool_call"), client.every("tool_result")
        assert called["id"] == result["id"]
        assert [message["text"] for message in client.every("response")] == [story(asked)]
        assert len(client.numbers) == len(set(client.numbers))
