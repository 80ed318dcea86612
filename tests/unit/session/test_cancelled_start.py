"""A user who changes their mind while the model of a call is still being connected."""

import pytest

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import ScriptedLive

CONNECTS_S = 3.0


async def start(servers: ScriptedServers, mode: c.Mode) -> Client:
    """Starts a call, whose model takes its time."""
    server = servers.open(text=["Hello."], voice=[])
    servers.voice = ScriptedLive(connect_s=CONNECTS_S)
    client = await Client(server).enter(mode=mode)
    await client.say(c.StartVoice() if mode is c.Mode.TEXT else c.StartListening(), seconds=1)
    await client.speak(0.5)
    return client


@pytest.mark.parametrize("mode", c.Mode)
async def test_without_a_change_of_mind_the_call_begins_when_the_model_is_connected(
    servers: ScriptedServers, mode: c.Mode
) -> None:
    client = await start(servers, mode)
    assert client.states == ["idle"]
    await client.settle(CONNECTS_S)
    assert "listening" in client.states
    assert servers.voice.audio_bytes > 0


@pytest.mark.parametrize("mode", c.Mode)
@pytest.mark.parametrize("message", [c.StopListening(), c.EndVoice()], ids=lambda message: type(message).__name__)
async def test_a_call_that_is_no_longer_wanted_does_not_begin(
    servers: ScriptedServers, mode: c.Mode, message: c.ClientMessage
) -> None:
    client = await start(servers, mode)
    await client.say(message, seconds=2 * CONNECTS_S)
    assert set(client.states) == {"idle"}
    assert servers.voice.audio_bytes == 0
    await client.speak(0.5)
    assert servers.voice.audio_bytes == 0


async def test_text_goes_on_after_a_start_that_was_cancelled(servers: ScriptedServers) -> None:
    client = await start(servers, c.Mode.TEXT)
    await client.say(c.EndVoice())
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."
