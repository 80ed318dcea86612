"""The scheduler with sessions of one or two processes on one database, on the virtual clock."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.services.reminders import ReminderService, Scheduler
from antiphon.services.reminders.scheduler import HEARD_MS, UNHEARD_MS
from antiphon.services.reminders.service import UserReminders
from antiphon.session.ringing import Listeners
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.reminders import ReminderRecord
from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.tools.context import SessionView, ToolView
from antiphon.tools.spec import Mode
from antiphon.words.schedules import parse_schedule
from tests.fakes.calls import Client, LoopClock, ScriptedServers, Server

UTC = ZoneInfo("UTC")


class Process:
    """A server with its scheduler. Any number of them may share a database."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.service = ReminderService(server.database.reminders, LoopClock(), server.database.changes)
        listeners = Listeners(server.hub, server.database.reminders, LoopClock())
        self.scheduler = Scheduler(self.service, listeners)
        self.scheduler.start()

    async def remind(
        self, message: str, seconds: float, kind: Kind = Kind.REMINDER, user: str = "ann", repeat: str | None = None
    ) -> Reminder:
        now = LoopClock().now(UTC)
        reminders = self.reminders(user)
        if repeat is None:
            return await reminders.add(kind, message, now + timedelta(seconds=seconds))
        schedule = parse_schedule(repeat, now)
        return await reminders.add(kind, message, schedule.due, schedule.repeat)

    def reminders(self, user: str = "ann") -> UserReminders:
        return self.service.offer(SessionView("s", user, Mode.TEXT, True, 1, UTC), ToolView("t", "1", True))

    async def die(self) -> None:
        """Ends as a killed process does: nothing more is sent or stored."""
        await self.scheduler.aclose()
        for active in self.server.hub.sessions.values():
            active.stop()
        await self.server.hub.aclose()


@pytest.fixture
async def processes() -> AsyncIterator["Processes"]:
    servers = ScriptedServers()
    processes = Processes(servers)
    yield processes
    for each in processes.opened:
        await each.scheduler.aclose()
    await servers.aclose()


class Processes:
    def __init__(self, servers: ScriptedServers) -> None:
        self.servers = servers
        self.database = MemoryDatabase()
        self.opened: list[Process] = []

    def open(self, **options: Any) -> Process:
        owner = f"process {len(self.opened)}"
        server = self.servers.open(text=[], database=self.database, owner=owner, **options)
        self.opened.append(Process(server))
        return self.opened[-1]


def rung(client: Client) -> list[str]:
    return [message.message for message in client.every(s.Reminder)]


async def resume(client: Client, process: Process) -> Client:
    """The client comes back with what it has seen, to any process."""
    again = Client(process.server, client.user)
    return await again.enter(resume=client.handle, last_n=client.last_n)


async def test_a_reminder_rings_when_it_is_due_and_once(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    await process.remind("call my mother", 60)
    await client.settle(59.8)
    assert rung(client) == []
    await client.settle(0.4)
    (message,) = client.every(s.Reminder)
    assert (message.message, message.kind, message.missed) == ("Call your mother", s.ReminderKind.REMINDER, False)
    await client.settle(600)
    assert len(rung(client)) == 1


async def test_it_rings_in_the_moment_and_not_at_the_next_poll(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    await process.remind("tea", 7.35)
    await client.settle(7.345)
    assert rung(client) == []
    await client.settle(0.02)
    assert rung(client) == ["Tea"]


async def test_the_message_says_what_rings(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    await process.remind("pasta", 10, Kind.TIMER)
    await process.remind("", 20, Kind.TIMER)
    await process.remind("", 30, Kind.ALARM)
    await client.settle(31)
    assert [(each.kind.value, each.message) for each in client.every(s.Reminder)] == [
        ("timer", "Pasta timer"),
        ("timer", "20 second timer"),
        ("alarm", "Alarm"),
    ]


async def test_only_its_user_is_told(processes: Processes) -> None:
    process = processes.open()
    ann, bob = await Client(process.server).enter(), await Client(process.server, "bob").enter()
    await process.remind("call my mother", 5)
    await ann.settle(10)
    assert (len(rung(ann)), rung(bob)) == (1, [])


async def test_all_clients_of_the_user_are_told_in_all_processes(processes: Processes) -> None:
    one, two = processes.open(), processes.open()
    clients = [await Client(process.server).enter() for process in (one, one, two)]
    await one.remind("call my mother", 5)
    await asyncio.sleep(300)
    assert [len(rung(client)) for client in clients] == [1, 1, 1]


async def test_a_cancelled_reminder_does_not_ring(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    reminder = await process.remind("call my mother", 5)
    await process.reminders().cancel([reminder.id])
    await client.settle(10)
    assert rung(client) == []


async def test_a_repeating_reminder_rings_each_time_under_another_id(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    await process.remind("stand up", 0, repeat="every hour")
    await client.settle(3 * 3600 + 1)
    rings = client.every(s.Reminder)
    assert [each.due - rings[0].due for each in rings] == [0, 3_600_000, 7_200_000]
    assert len({each.id for each in rings}) == 3


# Nobody is there.


async def test_without_a_client_it_is_told_as_missed_to_the_next_one(processes: Processes) -> None:
    process = processes.open()
    await process.remind("call my mother", 60)
    await asyncio.sleep(600)
    client = await Client(process.server).enter()
    await client.settle(2)
    (message,) = client.every(s.Reminder)
    assert (message.message, message.missed) == ("Call your mother", True)
    later = await Client(process.server).enter()
    await later.settle(300)
    assert rung(later) == []


async def test_of_the_missed_times_of_a_repeating_one_only_the_last_is_told(processes: Processes) -> None:
    process = processes.open()
    await process.remind("stand up", 0, repeat="every hour")
    await asyncio.sleep(5 * 3600 + 600)
    client = await Client(process.server).enter()
    await client.settle(2)
    assert [each.missed for each in client.every(s.Reminder)] == [True]


async def test_what_came_due_while_no_process_was_running_rings_at_the_start(processes: Processes) -> None:
    due_ms = LoopClock().now_ms() + 60_000
    record = ReminderRecord("r1", "ann", "reminder", "call my mother", due_ms, "UTC", None, due_ms - 60_000)
    await processes.database.reminders.add(record, 10)
    await asyncio.sleep(90)
    process = processes.open()
    client = await Client(process.server).enter()
    await client.settle(2)
    assert rung(client) == ["Call your mother"]


async def test_a_late_ring_after_a_short_restart_is_not_called_missed(processes: Processes) -> None:
    process = processes.open()
    await process.remind("call my mother", 5)
    await asyncio.sleep(30)
    client = await Client(process.server).enter()
    await client.settle(2)
    assert [each.missed for each in client.every(s.Reminder)] == [False]


# Clients and processes that go away.


async def test_a_client_that_resumes_gets_what_it_missed_and_nothing_twice(processes: Processes) -> None:
    one, two = processes.open(), processes.open()
    client = await Client(one.server).enter()
    await one.remind("call my mother", 5)
    await client.settle(6)
    assert len(rung(client)) == 1
    client.drop()
    again = await resume(client, two)
    await again.settle(300)
    assert again.last(s.Session).resumed
    assert rung(again) == []


async def test_a_ring_that_was_stored_and_not_received_comes_with_the_resume(processes: Processes) -> None:
    one, two = processes.open(), processes.open()
    client = await Client(one.server).enter()
    seen_n = client.last_n
    await one.remind("call my mother", 5)
    await client.settle(6)
    await one.die()
    again = Client(two.server)
    await again.enter(resume=client.handle, last_n=seen_n)
    await again.settle(300)
    assert rung(again) == ["Call your mother"]


async def test_a_ring_that_nobody_can_have_heard_is_told_to_another_client(processes: Processes) -> None:
    process = processes.open()
    dead = await Client(process.server).enter()
    await process.remind("call my mother", 5)
    await dead.settle(10)
    dead.drop()
    other = await Client(process.server).enter()
    await other.settle(UNHEARD_MS / 1000 + 2)
    assert rung(other) == ["Call your mother"]


async def test_a_ring_that_was_heard_is_not_told_to_another_client(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    await process.remind("call my mother", 5)
    await client.settle(5 + HEARD_MS / 1000 + 2)
    client.drop()
    other = await Client(process.server).enter()
    await other.settle(UNHEARD_MS / 1000 + 2)
    assert rung(other) == []


async def test_the_first_turn_after_a_ring_begins_a_conversation(processes: Processes) -> None:
    process = processes.open()
    processes.servers.script.script.append("Hello.")
    client = await Client(process.server).enter()
    await process.remind("call my mother", 5)
    await client.settle(10)
    assert await processes.database.conversations.list("ann", 10) == []
    await client.write("hi")
    assert [each.title for each in await processes.database.conversations.list("ann", 10)] == ["hi"]
    assert client.every(s.Error) == []


async def test_so_does_one_after_a_resume(processes: Processes) -> None:
    one, two = processes.open(), processes.open()
    processes.servers.script.script.append("Hello.")
    client = await Client(one.server).enter()
    await one.remind("call my mother", 5)
    await client.settle(10)
    client.drop()
    again = await resume(client, two)
    await again.write("hi")
    assert [each.title for each in await processes.database.conversations.list("ann", 10)] == ["hi"]
    assert again.every(s.Error) == []


async def test_the_client_of_one_http_request_is_not_told(processes: Processes) -> None:
    process = processes.open()
    client = Client(process.server)
    active = await process.server.hub.begin_request("ann", None, client.link)
    assert active is not None
    await process.remind("call my mother", 1)
    await client.settle(5)
    assert rung(client) == []
    await process.server.hub.end_request(active)
    page = await Client(process.server).enter()
    await page.settle(2)
    assert rung(page) == ["Call your mother"]


async def test_while_the_database_is_down_nothing_is_lost(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    await process.remind("call my mother", 5)

    async def fail(*args: object) -> Any:
        raise StoreUnavailable("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(processes.database.reminders, "ring", fail)
        await client.settle(10)
    with monkeypatch.context() as patch:
        patch.setattr(processes.database.reminders, "deliver", fail)
        await client.settle(20)
    assert rung(client) == []
    await client.settle(10)
    assert rung(client) == ["Call your mother"]
    assert client.every(s.Error) == []


async def test_a_rule_that_cannot_be_read_does_not_hold_up_the_others(processes: Processes) -> None:
    process = processes.open()
    client = await Client(process.server).enter()
    now_ms = LoopClock().now_ms()
    damaged = ReminderRecord("r0", "ann", "reminder", "stand up", now_ms + 1_000, "UTC", "{damaged", now_ms)
    await processes.database.reminders.add(damaged, 10)
    await process.remind("call my mother", 2)
    await client.settle(5)
    assert rung(client) == ["Stand up", "Call your mother"]


async def test_while_the_server_drains_what_comes_due_is_left_to_the_next(processes: Processes) -> None:
    one = processes.open()
    client = await Client(one.server).enter()
    await one.remind("call my mother", 5)
    await one.scheduler.aclose()
    await client.settle(10)
    assert rung(client) == []
    client.drop()
    again = await resume(client, processes.open())
    await again.settle(2)
    assert rung(again) == ["Call your mother"]


# In a call.


async def call(process: Process) -> Client:
    client = await Client(process.server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    return client


async def test_a_call_says_what_rings(processes: Processes) -> None:
    process = processes.open(voice=[])
    client = await call(process)
    await process.remind("call my mother", 5)
    await client.settle(12)
    assert rung(client) == ["Call your mother"]
    assert processes.servers.voice.said == ["Here's your reminder: call your mother."]


async def test_what_rings_at_once_is_one_announcement(processes: Processes) -> None:
    process = processes.open(voice=[])
    await process.remind("pasta", 5, Kind.TIMER)
    await process.remind("call my mother", 6)
    await process.remind("", 6.5, Kind.ALARM)
    await asyncio.sleep(3600)
    client = await call(process)
    await client.settle(5)
    (said,) = processes.servers.voice.said
    assert re.sub(r"\d+(:\d+)? [AP]M", "…", said) == (
        "While you were away, your pasta timer finished at …. You had a reminder at …: call your mother. "
        "Your alarm went off at …."
    )


async def test_an_announcement_that_a_killed_process_left_is_said_after_the_resume(processes: Processes) -> None:
    one = processes.open(voice=[])
    client = await call(one)
    await one.remind("call my mother", 5)
    await client.settle(5.02)
    assert len(rung(client)) == 1
    await one.die()
    again = await resume(client, processes.open(voice=[]))
    await again.say(c.StartListening(), seconds=10)
    assert processes.servers.voice.said == ["Here's your reminder: call your mother."]
    assert rung(again) == []


async def test_an_announcement_that_was_made_is_not_made_again_after_the_resume(processes: Processes) -> None:
    one = processes.open(voice=[])
    client = await call(one)
    await one.remind("call my mother", 5)
    await client.settle(9)
    await client.say(c.PlaybackDone())
    assert processes.servers.voice.said == ["Here's your reminder: call your mother."]
    await one.die()
    again = await resume(client, processes.open(voice=[]))
    await again.say(c.StartListening(), seconds=120)
    assert processes.servers.voice.said == []
