"""Reminders and their rings."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import Connection, and_, bindparam, delete, exists, func, insert, or_, select, update

from antiphon.storage.reminders import Delivery, OpenRing, ReminderRecord, Ring
from antiphon.storage.sessions import Fence, SentMessages
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.locks import lock
from antiphon.storage.sql.sessions import SqlMessageStore, check_fence
from antiphon.storage.sql.tables import reminders, ring_deliveries, rings

_OF_USER: Final = reminders.c.user == bindparam("owner")
_STILL_DUE: Final = (reminders.c.id == bindparam("reminder"), reminders.c.due_ms == bindparam("at_ms"))

_ADD: Final = insert(reminders)
_COUNT: Final = select(func.count()).select_from(reminders).where(_OF_USER)
_LIST: Final = select(reminders).where(_OF_USER).order_by(reminders.c.due_ms, reminders.c.id)
_CANCEL: Final = (
    delete(reminders).where(_OF_USER, reminders.c.id.in_(bindparam("ids", expanding=True))).returning(*reminders.c)
)
_NEXT_DUE: Final = select(func.min(reminders.c.due_ms))
_DUE: Final = (
    select(reminders)
    .where(reminders.c.due_ms <= bindparam("now_ms"))
    .order_by(reminders.c.due_ms, reminders.c.id)
    .limit(bindparam("count"))
)
_FINISH: Final = delete(reminders).where(*_STILL_DUE)
_MOVE: Final = update(reminders).where(*_STILL_DUE).values(due_ms=bindparam("next_ms"))
_CLEAR: Final = delete(reminders).where(_OF_USER)

_RING: Final = insert(rings)
_UNHEARD: Final = (
    select(rings.c.id).where(rings.c.reminder_id == bindparam("reminder"), rings.c.heard_ms.is_(None)).with_for_update()
)
_REPLACE_UNTOLD: Final = delete(rings).where(
    rings.c.reminder_id == bindparam("reminder"),
    rings.c.heard_ms.is_(None),
    ~exists().where(ring_deliveries.c.ring_id == rings.c.id),
)
_OPEN: Final = (
    select(rings)
    .where(
        rings.c.user.in_(bindparam("users", expanding=True)),
        or_(rings.c.heard_ms.is_(None), rings.c.rung_ms >= bindparam("since_ms")),
    )
    .order_by(rings.c.due_ms, rings.c.id)
)
_DELIVERIES: Final = (
    select(ring_deliveries)
    .where(ring_deliveries.c.ring_id.in_(bindparam("ids", expanding=True)))
    .order_by(ring_deliveries.c.at_ms, ring_deliveries.c.session_id)
)
_KNOWN: Final = (
    select(rings.c.id)
    .where(rings.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(rings.c.id)
    .with_for_update(read=True, key_share=True)
)
"""Postgres keeps the rows from being deleted until the transaction ends."""
_DELIVERED: Final = (
    select(func.count())
    .select_from(ring_deliveries)
    .where(
        ring_deliveries.c.ring_id.in_(bindparam("ids", expanding=True)),
        ring_deliveries.c.session_id == bindparam("session"),
    )
)
_DELIVER: Final = insert(ring_deliveries)
_HEAR: Final = (
    update(rings)
    .where(rings.c.id.in_(bindparam("ids", expanding=True)), rings.c.heard_ms.is_(None))
    .values(heard_ms=bindparam("now_ms"))
)
_LAST_RING: Final = (
    select(rings)
    .where(rings.c.user == bindparam("owner"), rings.c.rung_ms >= bindparam("since_ms"))
    .order_by(rings.c.due_ms.desc(), rings.c.id.desc())
    .limit(1)
)
_CLEAR_RINGS: Final = delete(rings).where(rings.c.user == bindparam("owner"))
_SWEEP: Final = delete(rings).where(
    or_(
        and_(rings.c.heard_ms.is_not(None), rings.c.rung_ms < bindparam("heard_before_ms")),
        and_(rings.c.heard_ms.is_(None), rings.c.rung_ms < bindparam("rung_before_ms")),
    )
)


class SqlReminderStore:
    def __init__(self, connections: Connections, messages: SqlMessageStore) -> None:
        self._connections = connections
        self._messages = messages

    async def add(self, record: ReminderRecord, limit: int) -> bool:
        def write(connection: Connection) -> bool:
            lock(connection, "reminders", record.user)
            if connection.execute(_COUNT, {"owner": record.user}).scalar_one() >= limit:
                return False
            connection.execute(_ADD, asdict(record))
            return True

        return await self._connections.in_transaction(write)

    async def list(self, user: str) -> Sequence[ReminderRecord]:
        return [ReminderRecord(*row) for row in await self._connections.fetch(_LIST, {"owner": user})]

    async def cancel(self, user: str, ids: Collection[str]) -> Sequence[ReminderRecord]:
        rows = await self._connections.fetch(_CANCEL, {"owner": user, "ids": [*ids]})
        return sorted((ReminderRecord(*row) for row in rows), key=lambda each: (each.due_ms, each.id))

    async def next_due(self) -> int | None:
        rows = await self._connections.fetch(_NEXT_DUE, {})
        due_ms: int | None = rows[0][0]
        return due_ms

    async def due(self, now_ms: int, limit: int) -> Sequence[ReminderRecord]:
        rows = await self._connections.fetch(_DUE, {"now_ms": now_ms, "count": limit})
        return [ReminderRecord(*row) for row in rows]

    async def ring(self, record: ReminderRecord, next_due_ms: int | None, now_ms: int) -> Ring | None:
        ring = Ring.of(record, now_ms)
        keys = {"reminder": record.id, "at_ms": record.due_ms, "next_ms": next_due_ms}

        def write(connection: Connection) -> Ring | None:
            # This statement decides which process rings: it waits for the others, and finds the row or does not.
            if not connection.execute(_FINISH if next_due_ms is None else _MOVE, keys).rowcount:
                return None
            # This waits for deliveries under way, so that the next statement sees them.
            connection.execute(_UNHEARD, {"reminder": record.id}).close()
            connection.execute(_REPLACE_UNTOLD, {"reminder": record.id})
            connection.execute(_RING, asdict(ring))
            return ring

        return await self._connections.in_transaction(write)

    async def open_rings(self, users: Collection[str], since_ms: int) -> Sequence[OpenRing]:
        def read(connection: Connection) -> Sequence[OpenRing]:
            found = [Ring(*row) for row in connection.execute(_OPEN, {"users": [*users], "since_ms": since_ms})]
            deliveries: defaultdict[str, list[Delivery]] = defaultdict(list)
            if found:
                for row in connection.execute(_DELIVERIES, {"ids": [ring.id for ring in found]}):
                    deliveries[row.ring_id].append(Delivery(*row))
            return [OpenRing(ring, tuple(deliveries[ring.id])) for ring in found]

        return await self._connections.autocommit(read)

    async def deliver(self, deliveries: Sequence[Delivery], fence: Fence, sent: SentMessages) -> bool:
        ids = [each.ring_id for each in deliveries]

        def write(connection: Connection) -> bool:
            check_fence(connection, fence)
            if len(connection.execute(_KNOWN, {"ids": ids}).all()) < len(ids):
                return False
            if connection.execute(_DELIVERED, {"ids": ids, "session": fence.session_id}).scalar_one():
                return False
            self._messages.write(connection, fence.session_id, sent)
            connection.execute(_DELIVER, [asdict(each) for each in deliveries])
            return True

        return await self._connections.in_transaction(write)

    async def hear(self, ring_ids: Collection[str], now_ms: int) -> None:
        await self._connections.change(_HEAR, {"ids": [*ring_ids], "now_ms": now_ms})

    async def last_ring(self, user: str, since_ms: int) -> Ring | None:
        rows = await self._connections.fetch(_LAST_RING, {"owner": user, "since_ms": since_ms})
        return Ring(*rows[0]) if rows else None

    async def clear(self, user: str) -> int:
        def write(connection: Connection) -> int:
            connection.execute(_CLEAR_RINGS, {"owner": user})
            return connection.execute(_CLEAR, {"owner": user}).rowcount

        return await self._connections.in_transaction(write)

    async def sweep(self, heard_before_ms: int, rung_before_ms: int) -> int:
        bounds = {"heard_before_ms": heard_before_ms, "rung_before_ms": rung_before_ms}
        return await self._connections.change(_SWEEP, bounds)
