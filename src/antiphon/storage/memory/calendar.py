"""Local calendars in memory."""

from collections.abc import Sequence

from antiphon.storage.calendar import StoredEvent


class MemoryCalendarStore:
    def __init__(self) -> None:
        self._events: dict[tuple[str, str], StoredEvent] = {}

    async def add(self, event: StoredEvent) -> bool:
        return self._events.setdefault((event.user, event.uid), event) is event

    async def put_all(self, events: Sequence[StoredEvent]) -> None:
        self._events.update({(event.user, event.uid): event for event in events})

    async def find(self, user: str, uid: str) -> StoredEvent | None:
        return self._events.get((user, uid))

    async def between(self, user: str, start_ms: int, end_ms: int) -> Sequence[StoredEvent]:
        found = [
            event
            for event in self._events.values()
            if event.user == user and event.first_ms < end_ms and (event.last_ms is None or event.last_ms >= start_ms)
        ]
        return sorted(found, key=lambda event: event.uid)

    async def list(self, user: str) -> Sequence[StoredEvent]:
        found = [event for event in self._events.values() if event.user == user]
        return sorted(found, key=lambda event: (event.first_ms, event.uid))

    async def replace(self, old: StoredEvent, new: StoredEvent) -> bool:
        key = (old.user, old.uid)
        if self._events.get(key) != old:
            return False
        self._events[key] = new
        return True

    async def remove(self, user: str, uid: str) -> bool:
        return self._events.pop((user, uid), None) is not None

    async def clear(self, user: str) -> int:
        keys = [key for key in self._events if key[0] == user]
        for key in keys:
            del self._events[key]
        return len(keys)
