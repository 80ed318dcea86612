"""Reminders that ring in sessions of other protocols, which have no message for them: they are said, or wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from antiphon.protocol import server_messages as s
from antiphon.services.reminders import ReminderService, Scheduler
from antiphon.session.ringing import Listeners
from antiphon.storage.reminders import ReminderRecord
from tests.fakes.calls import Client, LoopClock, ScriptedServers, Server
from tests.fakes.realtime_client import RealtimeClient
from tests.fakes.scripted_live import WAITING
from tests.unit.gateway.test_gemini_conversation import SPOKEN, begin


@asynccontextmanager
async def ringing(server: Server, *, in_s: float = 5) -> AsyncIterator[None]:
    """Sets a reminder of Ann's, and runs the scheduler."""
    clock, store = LoopClock(), server.database.reminders
    now_ms = clock.now_ms()
    due_ms = now_ms + round(in_s * 1000)
    await store.add(ReminderRecord("r1", "ann", "reminder", "call my mother", due_ms, "UTC", None, now_ms), 10)
    scheduler = Scheduler(ReminderService(store, clock, server.database.changes), Listeners(server.hub, store, clock))
    scheduler.start()
    try:
        yield
    finally:
        await scheduler.aclose()


async def test_a_realtime_call_says_it_as_a_response(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    client = await RealtimeClient.enter(server)
    async with ringing(server):
        await asyncio.sleep(15)
        assert client.transcript == "Here's your reminder: call your mother."
        assert client.audio_ms > 0
        assert len(client.every("response.done")) == 1
        assert client.every("error") == []


async def test_a_gemini_call_says_it_as_a_turn_of_the_model(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    talk = await begin(server, **SPOKEN)
    async with ringing(server):
        await asyncio.sleep(15)
        said = "".join(each.get("outputTranscription", {}).get("text", "") for each in talk.contents)
        assert said.strip() == "Here's your reminder: call your mother."
        assert talk.contents[-1].get("turnComplete")
        assert talk.closed is None


async def test_in_a_realtime_session_in_text_it_waits_for_another_client(servers: ScriptedServers) -> None:
    server = servers.open(text=[])
    client = await RealtimeClient.enter(server)
    async with ringing(server):
        await asyncio.sleep(15)
        assert client.every("response.created") == []
        page = await Client(server).enter()
        await page.settle(2)
        assert [each.message for each in page.every(s.Reminder)] == ["Call your mother"]


async def test_a_client_that_asks_for_every_answer_itself_is_not_spoken_to(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[], profile=WAITING)
    detection = {"type": "server_vad", "create_response": False}
    await RealtimeClient.enter(server, audio={"input": {"turn_detection": detection}})
    async with ringing(server):
        await asyncio.sleep(15)
        assert servers.voice.said == []
