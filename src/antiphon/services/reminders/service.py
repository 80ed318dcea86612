"""The reminders of users, as tools set, list and cancel them."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4
from zoneinfo import ZoneInfo

import msgspec

from antiphon.clock import Clock
from antiphon.storage.changes import Changes, Topic
from antiphon.storage.reminders import ReminderRecord, ReminderStore, Ring
from antiphon.tools.capabilities.reminders import Kind, Reminder
from antiphon.tools.context import SessionView, ToolView
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.words.repeats import Repeat
from antiphon.words.schedules import zone_of

MAX_PER_USER: Final = 500
DAY_MS: Final = 24 * 60 * 60 * 1000
KEPT_MS: Final = DAY_MS
"""How long a ring that was heard is kept, so that it can be set again."""
KEPT_UNHEARD_MS: Final = 30 * DAY_MS
"""How long a ring waits for its user to connect."""


class ReminderService:
    """Makes the capability for each call of a tool."""

    def __init__(self, store: ReminderStore, clock: Clock, changes: Changes) -> None:
        self.store = store
        self.clock = clock
        self.changes = changes

    def offer(self, session: SessionView, tool: ToolView) -> "UserReminders":
        return UserReminders(self, session.user, session.zone)

    async def sweep(self) -> int:
        """Deletes rings that nobody needs any more, and returns how many."""
        now_ms = self.clock.now_ms()
        return await self.store.sweep(now_ms - KEPT_MS, now_ms - KEPT_UNHEARD_MS)


class UserReminders:
    def __init__(self, service: ReminderService, user: str, zone: ZoneInfo) -> None:
        self._service = service
        self._user = user
        self._zone = zone

    async def add(self, kind: Kind, message: str, due: datetime, repeat: Repeat | None = None) -> Reminder:
        record = ReminderRecord(
            id=f"r{uuid4().hex[:12]}",
            user=self._user,
            kind=kind,
            message=message,
            due_ms=to_ms(due),
            zone=self._zone.key or "UTC",
            repeat=None if repeat is None else msgspec.json.encode(repeat).decode(),
            created_ms=self._service.clock.now_ms(),
        )
        if not await self._service.store.add(record, MAX_PER_USER):
            raise ToolError(
                ErrorType.CONFLICT,
                f"You already have {MAX_PER_USER} reminders, which is as many as I can keep.",
                suggestion="Offer to cancel some of them first.",
            )
        self._service.changes.announce(Topic.REMINDERS)
        return self._told(record)

    async def list(self) -> Sequence[Reminder]:
        return [self._told(record) for record in await self._service.store.list(self._user)]

    async def cancel(self, ids: Collection[str]) -> Sequence[Reminder]:
        return [self._told(record) for record in await self._service.store.cancel(self._user, ids)]

    async def last_ring(self, within: timedelta) -> Reminder | None:
        since_ms = self._service.clock.now_ms() - round(within.total_seconds() * 1000)
        ring = await self._service.store.last_ring(self._user, since_ms)
        return None if ring is None else self._told(ring)

    def _told(self, record: ReminderRecord | Ring) -> Reminder:
        repeat = repeat_of(record) if isinstance(record, ReminderRecord) else None
        return Reminder(
            id=record.id,
            kind=Kind(record.kind),
            message=record.message,
            due=to_moment(record.due_ms, self._zone),
            created=to_moment(record.created_ms, self._zone),
            repeat=repeat,
        )


def repeat_of(record: ReminderRecord) -> Repeat | None:
    return None if record.repeat is None else msgspec.json.decode(record.repeat, type=Repeat)


def next_due_ms(record: ReminderRecord, now_ms: int) -> int | None:
    """Returns the first time after now at which a repeating reminder is due, and after the time that is over."""
    repeat = repeat_of(record)
    if repeat is None:
        return None
    zone = zone_of(record.zone)
    after = to_moment(max(now_ms, record.due_ms), zone)
    return to_ms(repeat.next_after(after, to_moment(record.due_ms, zone)))


def to_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def to_moment(at_ms: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone)
