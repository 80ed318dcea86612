"""A calendar for the tests of tools: its events are given, and it records what is done to it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from antiphon.tools.capabilities.calendar import (
    Busy,
    CalendarInfo,
    Created,
    Event,
    EventDraft,
    LinkProvider,
    MeetingLink,
)
from antiphon.tools.errors import ToolError

ROOM = MeetingLink("https://meet.example.org/room", LinkProvider.JITSI)


@dataclass
class FakeCalendar:
    stored: list[Event] = field(default_factory=list)
    others: list[Busy] = field(default_factory=list)
    failure: ToolError | None = None
    delay_s: float = 0.0
    created: list[EventDraft] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    async def calendars(self) -> Sequence[CalendarInfo]:
        return [CalendarInfo("primary", is_own=True), CalendarInfo("team", is_own=False)]

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str] | None = None) -> Sequence[Event]:
        await asyncio.sleep(self.delay_s)
        if self.failure is not None:
            raise self.failure
        if calendars is not None and "primary" not in calendars:
            return []
        return [event for event in self.stored if event.start < end and event.end > start]

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str] | None = None) -> Sequence[Busy]:
        events = await self.events(start, end, calendars)
        own = [Busy(event.calendar, event.start, event.end) for event in events if event.is_busy]
        return own + (self.others if calendars is not None and "team" in calendars else [])

    async def create(self, draft: EventDraft, *, with_link: bool) -> Created:
        if self.failure is not None:
            raise self.failure
        is_new = draft.uid not in [each.uid for each in self.created]
        if is_new:
            self.created.append(draft)
        return Created(draft.uid, "primary", is_new, ROOM if with_link and is_new else None)

    async def delete(self, id: str) -> None:
        self.deleted.append(id)
