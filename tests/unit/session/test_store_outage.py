"""A session whose database is away for a while keeps its model, and stores later what it could not store."""

import asyncio

import pytest

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.active import PARKED_S
from antiphon.storage.base import StoreUnavailable
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.scripted_live import Hear, Say


def cut_off(server: Server, patch: pytest.MonkeyPatch) -> None:
    async def fail(*arguments: object, **named: object) -> None:
        raise StoreUnavailable("It is away.")

    patch.setattr(server.database.messages, "append_many", fail)
    patch.setattr(server.database.sessions, "save", fail)


async def call(servers: ScriptedServers) -> Client:
    """Begins a call that has had a turn, so that it is stored."""
    client = await Client(servers.open(text=[], voice=[Hear("Hello."), Say("Hi.", audio_ms=500)])).enter()
    await client.say(c.StartListening())
    await client.speak(3)
    await client.settle(10)
    assert client.every(s.Response)
    return client


async def test_a_call_keeps_its_model_while_nothing_can_be_stored(servers: ScriptedServers) -> None:
    client = await call(servers)
    model, live = servers.voice, client.live
    assert live is not None
    with pytest.MonkeyPatch.context() as patch:
        cut_off(client.server, patch)
        live.runner.outbox.send(s.Notice(s.NoticeKind.INFO, "The oven is hot."))
        for _ in range(20):
            await client.say(c.Ping(1), seconds=0.5)
        assert servers.voice is model
        assert not client.every(s.Error)
        assert len(client.every(s.Pong)) == 20
    await client.say(c.Ping(2))
    stored = await client.server.database.messages.after(live.id, 0)
    assert any("The oven is hot." in text for _, text in stored)


async def test_a_parked_session_is_retired_when_the_database_is_back(servers: ScriptedServers) -> None:
    client = await call(servers)
    hub = client.server.hub
    with pytest.MonkeyPatch.context() as patch:
        cut_off(client.server, patch)
        client.drop()
        await asyncio.sleep(PARKED_S + 5)
        assert len(hub.sessions) == 1
    await asyncio.sleep(PARKED_S + 5)
    assert len(hub.sessions) == 0
