"""Local calendars in the database."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import bindparam, delete, or_, select, update

from antiphon.storage.calendar import StoredEvent
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.tables import calendar_events as events

_OF_USER: Final = events.c.user == bindparam("owner")
_NAMED: Final = (_OF_USER, events.c.uid == bindparam("named"))

_FIND: Final = select(events).where(*_NAMED)
_BETWEEN: Final = (
    select(events)
    .where(
        _OF_USER,
        events.c.first_ms < bindparam("end_ms"),
        or_(events.c.last_ms.is_(None), events.c.last_ms >= bindparam("start_ms")),
    )
    .order_by(events.c.uid)
)
_LIST: Final = select(events).where(_OF_USER).order_by(events.c.first_ms, events.c.uid)
_REPLACE: Final = update(events).where(*_NAMED, events.c.ics == bindparam("old_ics"))
_REMOVE: Final = delete(events).where(*_NAMED)
_CLEAR: Final = delete(events).where(_OF_USER)


class SqlCalendarStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        insertion = connections.insert(events)
        new = insertion.excluded
        self._add = insertion.on_conflict_do_nothing(index_elements=[events.c.user, events.c.uid])
        self._put = insertion.on_conflict_do_update(
            index_elements=[events.c.user, events.c.uid],
            set_={name: new[name] for name in ("calendar", "ics", "first_ms", "last_ms")},
        )

    async def add(self, event: StoredEvent) -> bool:
        return bool(await self._connections.change(self._add, asdict(event)))

    async def put_all(self, events: Sequence[StoredEvent]) -> None:
        if events:
            await self._connections.change_all(self._put, [asdict(event) for event in events])

    async def find(self, user: str, uid: str) -> StoredEvent | None:
        rows = await self._connections.fetch(_FIND, {"owner": user, "named": uid})
        return StoredEvent(*rows[0]) if rows else None

    async def between(self, user: str, start_ms: int, end_ms: int) -> Sequence[StoredEvent]:
        keys = {"owner": user, "start_ms": start_ms, "end_ms": end_ms}
        return [StoredEvent(*row) for row in await self._connections.fetch(_BETWEEN, keys)]

    async def list(self, user: str) -> Sequence[StoredEvent]:
        return [StoredEvent(*row) for row in await self._connections.fetch(_LIST, {"owner": user})]

    async def replace(self, old: StoredEvent, new: StoredEvent) -> bool:
        changed = {name: value for name, value in asdict(new).items() if name not in ("user", "uid")}
        keys = {"owner": old.user, "named": old.uid, "old_ics": old.ics, **changed}
        return bool(await self._connections.change(_REPLACE, keys))

    async def remove(self, user: str, uid: str) -> bool:
        return bool(await self._connections.change(_REMOVE, {"owner": user, "named": uid}))

    async def clear(self, user: str) -> int:
        return await self._connections.change(_CLEAR, {"owner": user})
