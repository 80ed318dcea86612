"""The local calendar: events of each user in the database."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from antiphon.clock import Clock
from antiphon.services.calendar import failures
from antiphon.services.calendar.backend import split_id
from antiphon.services.calendar.ical import EventText, find_occurrences, make_event, remove_occurrence
from antiphon.storage.calendar import CalendarStore, StoredEvent
from antiphon.tools.capabilities.calendar import Busy, CalendarInfo, Event, EventDraft

PRIMARY: Final = "primary"
"""The calendar that every user has."""


class LocalBackend:
    def __init__(self, store: CalendarStore, user: str, clock: Clock) -> None:
        self._store = store
        self._user = user
        self._clock = clock

    async def calendars(self) -> Sequence[CalendarInfo]:
        stored = {event.calendar for event in await self._store.list(self._user)}
        return [CalendarInfo(name, is_own=True) for name in (PRIMARY, *sorted(stored - {PRIMARY}))]

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Event]:
        stored = await self._store.between(self._user, to_ms(start), to_ms(end))
        wanted = [event for event in stored if event.calendar in calendars]
        # In a thread, since a long series takes some milliseconds.
        return await asyncio.to_thread(_expand, wanted, start, end, zone)

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Busy]:
        events = await self.events(start, end, calendars, zone)
        return [Busy(event.calendar, event.start, event.end) for event in events if event.is_busy]

    async def add(self, draft: EventDraft, zone: ZoneInfo) -> bool:
        return await self._store.add(store_event(make_event(draft, self._clock.now(UTC)), self._user, PRIMARY))

    async def remove(self, id: str, zone: ZoneInfo) -> None:
        uid, occurrence = split_id(id)
        if await self._store.find(self._user, id) is not None:
            uid, occurrence = id, None
        stored = await self._store.find(self._user, uid)
        if stored is None:
            raise failures.no_such_event()
        if occurrence is None:
            await self._store.remove(self._user, uid)
            return
        left = await asyncio.to_thread(remove_occurrence, stored.ics, occurrence)
        if left is None:
            raise failures.no_such_event()
        if not await self._store.replace(stored, store_event(left, self._user, stored.calendar)):
            raise failures.changed_meanwhile()


def store_event(event: EventText, user: str, calendar: str) -> StoredEvent:
    last_ms = None if event.last is None else to_ms(event.last)
    return StoredEvent(user, event.uid, calendar, event.ics, first_ms=to_ms(event.first), last_ms=last_ms)


def to_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _expand(stored: Sequence[StoredEvent], start: datetime, end: datetime, zone: ZoneInfo) -> list[Event]:
    return [
        occurrence
        for event in stored
        for occurrence in find_occurrences(event.ics, start, end, calendar=event.calendar, zone=zone)
    ]
