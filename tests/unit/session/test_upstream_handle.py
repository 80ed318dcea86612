"""When the handle of an upstream session is used again, and when what it leads to is no longer true."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from antiphon.continuity.upstream import UpstreamState
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.active import PARKED_S
from antiphon.session.resume_state import ResumeState
from antiphon.storage.memory import MemoryDatabase
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import PROFILE, HangUp, Hear, Resumable, Say, Stall


async def start(servers: ScriptedServers, *script: Any, **options: Any) -> Client:
    """A call whose model can be resumed."""
    client = await Client(servers.open(text=["Noted."], voice=[Resumable("h1"), *script], **options)).enter()
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


# Sessions without a client.

NOON = (Hear("what time is it"), Say("It is noon.", audio_ms=500))


async def resume_elsewhere(servers: ScriptedServers, client: Client, **options: Any) -> Client:
    two = servers.open(text=[], voice=[], database=client.server.database, owner="two", **options)
    back = await Client(two).enter(resume=client.handle, last_n=client.last_n)
    await back.settle(2)
    return back


async def test_a_parked_session_keeps_its_upstream_session_open_for_two_minutes(servers: ScriptedServers) -> None:
    client = await start(servers, *NOON)
    await client.speak(1)
    await client.settle(10)
    client.drop()
    await asyncio.sleep(PARKED_S - 1)
    assert not servers.voice.closed
    await asyncio.sleep(2)
    assert servers.voice.closed


@pytest.mark.parametrize("away_s", [1, PARKED_S + 30])
async def test_another_process_resumes_the_upstream_session(servers: ScriptedServers, away_s: float) -> None:
    client = await start(servers, *NOON, database=MemoryDatabase())
    await client.speak(1)
    await client.settle(10)
    client.drop()
    await asyncio.sleep(away_s)
    await resume_elsewhere(servers, client)
    assert servers.voice.resumed_with == "h1"


async def test_the_newest_handle_is_kept_if_the_client_is_lost_during_an_answer(servers: ScriptedServers) -> None:
    script = (*NOON, Hear("and now"), Say("Wait.", goes_on=True), Resumable("h2"), Stall())
    client = await start(servers, *script, database=MemoryDatabase())
    await client.speak(1)
    await client.settle(10)
    await client.speak(1)
    await client.settle(5)
    client.drop()
    await client.settle(1)
    await resume_elsewhere(servers, client)
    assert servers.voice.resumed_with == "h2"


async def test_the_handle_of_another_model_is_not_used(servers: ScriptedServers) -> None:
    client = await start(servers, *NOON, database=MemoryDatabase())
    await client.speak(1)
    await client.settle(10)
    await resume_elsewhere(servers, client, profile=replace(PROFILE, name="another"))
    assert servers.voice.context is not None
    assert servers.voice.resumed_with is None


def test_a_record_without_upstream_sessions_can_be_read() -> None:
    old = b'{"voice_speed":120,"listening":true,"turns":3,"settled_seq":6,"is_answering":false}'
    state = msgspec.json.decode(old, type=ResumeState)
    assert (state.turns, state.upstream) == (3, UpstreamState())
