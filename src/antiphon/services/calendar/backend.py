"""The seam between the calendar of a user and where it is kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from antiphon.tools.capabilities.calendar import Busy, CalendarInfo, Event, EventDraft
from antiphon.tools.errors import ErrorType, ToolError


class CalendarBackend(Protocol):
    """The calendars of one account. Failures are raised as `ToolError`."""

    async def calendars(self) -> Sequence[CalendarInfo]:
        """Returns the own calendars, the one for new events first, and then those of other people."""
        ...

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Event]:
        """Returns the occurrences in these own calendars that overlap the range, with their times in the zone."""
        ...

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Busy]:
        """Returns the busy times of these calendars that overlap the range."""
        ...

    async def add(self, draft: EventDraft, zone: ZoneInfo) -> bool:
        """Adds an event to the first own calendar. Returns False, and changes nothing, if its uid is there."""
        ...

    async def remove(self, id: str, zone: ZoneInfo) -> None:
        """Removes an event, an occurrence or a series."""
        ...


class NoCalendar:
    """What users get whose calendar is not on this server: every use of it fails."""

    async def calendars(self) -> Sequence[CalendarInfo]:
        raise ToolError(
            ErrorType.AUTH,
            "There is no calendar for you on this server.",
            suggestion="The calendar belongs to another user of this server. Its host sets calendar.users.",
        )

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Event]:
        await self.calendars()
        return []

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Busy]:
        await self.calendars()
        return []

    async def add(self, draft: EventDraft, zone: ZoneInfo) -> bool:
        await self.calendars()
        return False

    async def remove(self, id: str, zone: ZoneInfo) -> None:
        await self.calendars()


def event_id(uid: str, occurrence: str | None = None) -> str:
    """Makes the id of an event from its uid, and from what identifies an occurrence of a series."""
    return uid if occurrence is None else f"{uid}#{occurrence}"


def split_id(id: str) -> tuple[str, str | None]:
    uid, separator, occurrence = id.rpartition("#")
    return (uid, occurrence) if separator else (id, None)
