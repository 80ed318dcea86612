"""The calendar of a session's user. Times are aware, in the user's zone; an all-day event lasts from midnight to
midnight."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

UID_PREFIX: Final = "antiphon-"
"""Begins the uid of every event that is created here."""


class CalendarInfo(Struct, frozen=True):
    name: str
    is_own: bool
    """False for a calendar of other people, of which only the busy times are known."""


class Event(Struct, frozen=True):
    """One event, or one occurrence of a series."""

    id: str
    """Identifies the event, or the occurrence within its series."""
    calendar: str
    title: str
    start: datetime
    end: datetime
    all_day: bool = False
    is_busy: bool = True
    """Whether the user has no time for anything else meanwhile."""
    attendees: tuple[str, ...] = ()
    description: str = ""
    link: str | None = None
    series: str | None = None
    """Identifies the series that the event is an occurrence of; None if it happens once."""


class Busy(Struct, frozen=True):
    """A time at which a calendar has something. What it is, is not told."""

    calendar: str
    start: datetime
    end: datetime


class LinkProvider(StrEnum):
    ZOOM = "zoom"
    JITSI = "jitsi"


class MeetingLink(Struct, frozen=True):
    url: str
    provider: LinkProvider


class EventDraft(Struct, frozen=True):
    """An event to create."""

    uid: str
    """Made from the request, so that a second delivery of it cannot create a second event."""
    title: str
    start: datetime
    end: datetime
    attendees: tuple[str, ...] = ()
    description: str = ""
    link: MeetingLink | None = None


class Created(Struct, frozen=True):
    id: str
    calendar: str
    is_new: bool
    """False if the same event was there already; then nothing was changed."""
    link: MeetingLink | None


class Calendar(Protocol):
    """The calendars that the user may see. Failures are raised as `ToolError`, with a sentence for the user."""

    async def calendars(self) -> Sequence[CalendarInfo]:
        """Returns the user's own calendars, the one for new events first, and then those of other people."""
        ...

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str] | None = None) -> Sequence[Event]:
        """Returns the events of the user's own calendars that overlap the range, in order of time, with every
        occurrence of a series on its own. By default all calendars are read."""
        ...

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str] | None = None) -> Sequence[Busy]:
        """Returns the busy times in the range, in order. By default, of the user's own calendars."""
        ...

    async def create(self, draft: EventDraft, *, with_link: bool) -> Created:
        """Adds an event to the first of the user's own calendars. If `with_link`, it gets a link to a meeting."""
        ...

    async def delete(self, id: str) -> None:
        """Deletes an event, an occurrence, or a series with all its occurrences, by its id."""
        ...
