"""Runs of tools. The unique keys of the table decide who is first, in however many processes."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import and_, bindparam, delete, or_, select, update

from antiphon.storage.base import CALLS_KEPT_PER_SESSION, CallRecord
from antiphon.storage.sql.connections import Connections, KeyTakenError
from antiphon.storage.sql.sweeping import delete_all, some
from antiphon.storage.sql.tables import calls
from antiphon.storage.sql.tally import Tally

PRUNED_EVERY: Final = 32
"""Old records are deleted once for so many new ones of a session."""

# A key that is NULL equals nothing, so it finds nothing.
_HOLDER: Final = (
    select(calls)
    .where(
        or_(
            calls.c.id == bindparam("id"),
            and_(calls.c.session_id == bindparam("session_id"), calls.c.provider_key == bindparam("provider_key")),
            and_(calls.c.session_id == bindparam("session_id"), calls.c.hash_key == bindparam("hash_key")),
        )
    )
    .order_by(calls.c.started_ms.desc())
    .limit(1)
)

_RESTART: Final = update(calls).where(
    calls.c.id == bindparam("old_id"),
    calls.c.lease_until_ms == bindparam("old_lease_until_ms"),
    calls.c.result.is_(None),
)

_RENEW: Final = (
    update(calls)
    .where(calls.c.id == bindparam("of_id"), calls.c.result.is_(None))
    .values(lease_until_ms=bindparam("until_ms"))
)
_UNFINISHED: Final = (
    select(calls)
    .where(calls.c.session_id == bindparam("session_id"), calls.c.result.is_(None))
    .order_by(calls.c.started_ms)
)

_FINISHED: Final = and_(calls.c.session_id == bindparam("session"), calls.c.result.is_not(None))
_PRUNE: Final = delete(calls).where(
    _FINISHED,
    calls.c.started_ms
    < select(calls.c.started_ms)
    .where(_FINISHED)
    .order_by(calls.c.started_ms.desc())
    .limit(1)
    .offset(CALLS_KEPT_PER_SESSION - 1)
    .scalar_subquery(),
)
_DELETE_BEFORE: Final = some(calls, calls.c.started_ms < bindparam("at_ms"))


class SqlCallStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        insert = connections.insert(calls)
        self._start = insert.on_conflict_do_nothing()
        self._finish = insert.on_conflict_do_update(
            index_elements=[calls.c.id], set_={calls.c.result: insert.excluded.result}
        )
        self._unpruned = Tally(PRUNED_EVERY)

    async def find(self, session_id: str, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        return await self._holder(None, session_id, provider_key, hash_key)

    async def start(self, record: CallRecord) -> CallRecord | None:
        row = asdict(record)
        while not await self._connections.change(self._start, row):
            in_the_way = await self._holder(record.id, record.session_id, record.provider_key, record.hash_key)
            if in_the_way is not None:
                return in_the_way
            # It was replaced or deleted between the two statements, so the place may be free now.
        return None

    async def restart(self, old: CallRecord, new: CallRecord) -> bool:
        places = {"old_id": old.id, "old_lease_until_ms": old.lease_until_ms}
        try:
            return bool(await self._connections.change(_RESTART, asdict(new) | places))
        except KeyTakenError:
            return False

    async def renew(self, records: Sequence[CallRecord], lease_until_ms: int) -> None:
        leases = [{"of_id": record.id, "until_ms": lease_until_ms} for record in records]
        await self._connections.change_all(_RENEW, leases)

    async def unfinished(self, session_id: str) -> Sequence[CallRecord]:
        rows = await self._connections.fetch(_UNFINISHED, {"session_id": session_id})
        return [CallRecord(*row) for row in rows]

    async def finish(self, record: CallRecord) -> None:
        try:
            await self._connections.change(self._finish, asdict(record))
        except KeyTakenError:
            # Another run holds the key: of a reading tool, which may well run twice, or one that replaced this one.
            return
        if self._unpruned.add(record.session_id):
            await self._connections.change(_PRUNE, {"session": record.session_id})

    async def delete_before(self, at_ms: int) -> int:
        return await delete_all(self._connections, _DELETE_BEFORE, {"at_ms": at_ms})

    async def _holder(
        self, id: str | None, session_id: str, provider_key: str | None, hash_key: str | None
    ) -> CallRecord | None:
        keys = {"id": id, "session_id": session_id, "provider_key": provider_key, "hash_key": hash_key}
        rows = await self._connections.fetch(_HOLDER, keys)
        return CallRecord(*rows[0]) if rows else None
