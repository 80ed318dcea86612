"""Reminders in memory, for the tests of tools that use them."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from antiphon.authoring.testing import StillClock
from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.words.repeats import Repeat


class FakeReminders:
    """`context.reminders` without a database. Nothing rings; `rang` is what is said to have rung last."""

    def __init__(self, clock: StillClock | None = None) -> None:
        self.clock = clock or StillClock()
        self.stored: list[Reminder] = []
        self.rang: Reminder | None = None

    async def add(self, kind: Kind, message: str, due: datetime, repeat: Repeat | None = None) -> Reminder:
        created = self.clock.now(due.tzinfo) if due.tzinfo is not None else due
        reminder = Reminder(f"r{len(self.stored) + 1}", kind, message, due, created, repeat)
        self.stored.append(reminder)
        return reminder

    async def list(self) -> Sequence[Reminder]:
        return sorted(self.stored, key=lambda each: each.due)

    async def cancel(self, ids: Collection[str]) -> Sequence[Reminder]:
        found = [each for each in await self.list() if each.id in ids]
        self.stored = [each for each in self.stored if each.id not in ids]
        return found

    async def last_ring(self, within: timedelta) -> Reminder | None:
        return self.rang
