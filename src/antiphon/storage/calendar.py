"""The interface of the store of local calendars."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class StoredEvent(Struct, frozen=True):
    """An event of a user with all its recurrences and exceptions, as one iCalendar text."""

    user: str
    uid: str
    calendar: str
    ics: str
    first_ms: int
    """No occurrence begins before this time, in any time zone."""
    last_ms: int | None
    """No occurrence ends after this time, in any time zone; None for a series whose end is not known."""


class CalendarStore(Protocol):
    async def add(self, event: StoredEvent) -> bool:
        """Adds an event. Returns False, and changes nothing, if the user has an event with this uid."""
        ...

    async def put_all(self, events: Sequence[StoredEvent]) -> None:
        """Adds the events, and replaces those that have the same user and uid: all of them, or none if it fails."""
        ...

    async def find(self, user: str, uid: str) -> StoredEvent | None: ...

    async def between(self, user: str, start_ms: int, end_ms: int) -> Sequence[StoredEvent]:
        """Returns the events that may have an occurrence in this range, by uid."""
        ...

    async def list(self, user: str) -> Sequence[StoredEvent]:
        """Returns all events of the user, the earliest first."""
        ...

    async def replace(self, old: StoredEvent, new: StoredEvent) -> bool:
        """Replaces an event. Returns False, and changes nothing, if it is no longer the old one."""
        ...

    async def remove(self, user: str, uid: str) -> bool:
        """Removes an event with all its recurrences, and returns whether it existed."""
        ...

    async def clear(self, user: str) -> int:
        """Removes all events of the user, and returns how many there were."""
        ...
