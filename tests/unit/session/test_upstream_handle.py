"""When the handle of an upstream session is used again, and when what it leads to is no longer true."""

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import HangUp, Hear, Resumable, Say


async def start(servers: ScriptedServers, *script: HangUp | Hear | Say) -> Client:
    """A call whose model can be resumed."""
    client = await Client(servers.open(text=["Noted."], voice=[Resumable("h1"), *script])).enter()
    await client.say(c.StartListening(), seconds=1)
    return client


async def test_a_lost_upstream_session_is_resumed(servers: ScriptedServers) -> None:
    await start(servers, HangUp("gone"))
    assert servers.voice.resumed_with == "h1"


async def test_a_cleared_conversation_is_not_resumed_upstream(servers: ScriptedServers) -> None:
    client = await start(servers)
    first = servers.voice
    await client.say(c.ClearConversation(), seconds=2)
    assert servers.voice is not first
    assert servers.voice.resumed_with is None


async def test_an_upstream_session_that_lacks_the_turns_of_another_client_is_not_resumed(
    servers: ScriptedServers,
) -> None:
    client = await start(servers, Hear("I am Ann"), Say("Hello Ann.", audio_ms=100), Hear("who am I"), Say("Ann."))
    first = servers.voice
    await client.speak(1)
    await client.settle(10)
    other = await Client(client.server).enter(mode=c.Mode.TEXT, conversation_id=client.last(s.Session).conversation_id)
    await other.write("I am 30")
    await client.speak(1)
    await client.settle(10)
    assert servers.voice is not first
    assert servers.voice.resumed_with is None
