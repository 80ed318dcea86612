"""Speech is kept for a client that comes back, until it was played."""

from collections.abc import AsyncIterator

import pytest

from antiphon.models.text_live import TextLiveModel
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client, Server
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import Hear, Say, ScriptedLive


@pytest.fixture
async def speaking() -> AsyncIterator[Client]:
    """A client that was told an answer of a second, and is playing it."""
    voice = ScriptedLive([Hear("what time is it"), Say("It is noon.", audio_ms=1_000)])
    script = ScriptedModel([])
    server = Server(models={Mode.TEXT: lambda: TextLiveModel(script), Mode.VOICE: lambda: voice})
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    assert client.states[-1] == "speaking"
    yield client
    await server.aclose()


async def come_back(client: Client) -> Client:
    """The client's socket is gone, and another one has seen nothing."""
    client.drop()
    return await Client(client.server).enter(resume=client.handle, last_n=0)


async def test_what_was_not_played_is_sent_again_in_its_place(speaking: Client) -> None:
    back = await come_back(speaking)
    assert len(back.every(s.Audio)) == len(speaking.every(s.Audio)) > 0
    replayed = [message.n for message in back.told if message.n <= speaking.last_n]
    assert replayed == sorted(replayed)


async def test_what_was_played_is_not_sent_again(speaking: Client) -> None:
    await speaking.say(c.PlaybackDone(), seconds=1)
    back = await come_back(speaking)
    assert back.every(s.Response)
    assert back.every(s.Audio) == []


async def test_what_was_interrupted_is_not_sent_again(speaking: Client) -> None:
    await speaking.say(c.Interrupt(), seconds=1)
    assert (await come_back(speaking)).every(s.Audio) == []
