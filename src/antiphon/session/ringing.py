"""The sessions of a process, as the scheduler of reminders tells them what rings."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from antiphon.clock import Clock
from antiphon.protocol import server_messages as s
from antiphon.session.active import ActiveSession
from antiphon.session.hub import Hub
from antiphon.session.outbox import Link
from antiphon.storage.reminders import Delivery, ReminderStore
from antiphon.storage.sessions import Fenced
from antiphon.tools.capabilities.reminders import DueReminder
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage


class Listeners:
    """Lists the sessions that can be told, and knows since when each has had its client."""

    def __init__(self, hub: Hub, store: ReminderStore, clock: Clock) -> None:
        self._hub = hub
        self._store = store
        self._clock = clock
        self._connected: dict[str, tuple[Link, int]] = {}

    def __call__(self) -> "list[SessionListener]":
        now_ms = self._clock.now_ms()
        connected: dict[str, tuple[Link, int]] = {}
        listeners = []
        for active in self._hub.connected():
            link = active.runner.outbox.link
            if link is None or not active.takes_reminders:
                continue
            before = self._connected.get(active.id)
            since_ms = before[1] if before is not None and before[0] is link else now_ms
            connected[active.id] = (link, since_ms)
            listeners.append(SessionListener(active, self._store, since_ms))
        self._connected = connected
        return listeners


@dataclass(frozen=True, slots=True)
class SessionListener:
    active: ActiveSession
    store: ReminderStore
    connected_ms: int

    @property
    def id(self) -> str:
        return self.active.id

    @property
    def user(self) -> str:
        return self.active.user

    @property
    def speaks(self) -> bool:
        return self.active.runner.state.mode is Mode.VOICE

    @property
    def has_more_to_say(self) -> bool:
        return len(self.active.runner.announcements) > 0

    def announce(self, text: str) -> None:
        self.active.runner.announcements.add(text)

    def has_said(self, text: str, since_ms: int) -> bool:
        return any(
            isinstance(entry.message, AssistantMessage)
            and entry.at_ms >= since_ms
            and entry.message.text.strip()
            and text.startswith(entry.message.text.strip())
            for entry in self.active.runner.writer.transcript
        )

    async def deliver(self, due: Sequence[DueReminder], deliveries: Sequence[Delivery]) -> bool:
        messages = [msgspec.convert(msgspec.to_builtins(each), s.Reminder) for each in due]
        store = partial(self.store.deliver, deliveries)
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            outcome: bool | Exception
            try:
                outcome = await self.active.runner.deliver(messages, store)
            except Exception as error:
                outcome = error
            if done.done():
                return
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)
            if isinstance(outcome, Fenced):
                raise outcome

        # Through the mailbox: the messages of a session are stored one after another.
        self.active.runner.post(work)
        waiting: list[asyncio.Future[Any]] = [done]
        if self.active.task is not None:
            waiting.append(self.active.task)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.result() if done.done() else False
        finally:
            done.cancel()
