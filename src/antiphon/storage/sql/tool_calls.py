"""The stores of the tool gate: tool runs, confirmations and the audit.

The unique keys of the table decide which process may run a call. Taking a confirmation deletes its row, which only one
statement can do. A line of the audit is stored as JSON, so that a new field needs no migration."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import json
from msgspec.structs import asdict
from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, update

from antiphon.storage.base import CALLS_KEPT_PER_SESSION, AuditLine, CallRecord, Confirmation
from antiphon.storage.sql.connections import Connections, KeyTakenError, Params
from antiphon.storage.sql.locks import lock
from antiphon.storage.sql.pruning import PruneCounter, delete_in_batches, delete_some
from antiphon.storage.sql.tables import audit, calls, confirmations

PRUNED_EVERY: Final = 32
"""How many new records of a session there are between two prunings."""

# A NULL key is equal to nothing, so it finds nothing.
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
_CLEAR: Final = delete(calls).where(calls.c.session_id == bindparam("session"))
_DELETE_BEFORE: Final = delete_some(calls, calls.c.started_ms < bindparam("at_ms"))


class SqlCallStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        insert = connections.insert(calls)
        self._start = insert.on_conflict_do_nothing()
        self._finish = insert.on_conflict_do_update(
            index_elements=[calls.c.id], set_={calls.c.result: insert.excluded.result}
        )
        self._unpruned = PruneCounter(PRUNED_EVERY)

    async def find(self, session_id: str, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        return await self._holder(None, session_id, provider_key, hash_key)

    async def start(self, record: CallRecord) -> CallRecord | None:
        row = asdict(record)
        while not await self._connections.change(self._start, row):
            in_the_way = await self._holder(record.id, record.session_id, record.provider_key, record.hash_key)
            if in_the_way is not None:
                return in_the_way
            # It was replaced or deleted between the two statements, so the key may be free now.
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
            # Another run has the key: one of a read-only tool, which may run twice, or one that replaced this run.
            return
        if self._unpruned.add(record.session_id):
            await self._connections.change(_PRUNE, {"session": record.session_id})

    async def delete_before(self, at_ms: int) -> int:
        return await delete_in_batches(self._connections, _DELETE_BEFORE, {"at_ms": at_ms})

    async def clear(self, session_ids: Collection[str]) -> int:
        return sum([await self._connections.change(_CLEAR, {"session": each}) for each in session_ids])

    async def _holder(
        self, id: str | None, session_id: str, provider_key: str | None, hash_key: str | None
    ) -> CallRecord | None:
        keys = {"id": id, "session_id": session_id, "provider_key": provider_key, "hash_key": hash_key}
        rows = await self._connections.fetch(_HOLDER, keys)
        return CallRecord(*rows[0]) if rows else None


_FIELDS: Final = [column for column in confirmations.c if column.name != "seq"]
_OWNED: Final = (
    confirmations.c.session_id == bindparam("session_id"),
    confirmations.c.user == bindparam("user"),
)

_PUT: Final = insert(confirmations)
_TAKE: Final = (
    delete(confirmations).where(confirmations.c.token_hash == bindparam("token_hash"), *_OWNED).returning(*_FIELDS)
)
_PENDING: Final = (
    select(*_FIELDS).where(*_OWNED, confirmations.c.expires_ms > bindparam("now_ms")).order_by(confirmations.c.seq)
)
_REHASH: Final = (
    update(confirmations)
    .where(
        # The column's own name cannot be used for a condition of an UPDATE.
        confirmations.c.token_hash == bindparam("old_hash"),
        confirmations.c.session_id == bindparam("of_session"),
        confirmations.c.user == bindparam("of_user"),
    )
    .values(token_hash=bindparam("new_hash"))
)
_CLEAR_CONFIRMATIONS: Final = delete(confirmations).where(confirmations.c.user == bindparam("owner"))
_SWEEP: Final = delete(confirmations).where(confirmations.c.expires_ms <= bindparam("now_ms"))


class SqlConfirmationStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, confirmation: Confirmation) -> None:
        await self._connections.change(_PUT, asdict(confirmation))

    async def take(self, token_hash: str, session_id: str, user: str) -> Confirmation | None:
        keys = {"token_hash": token_hash, "session_id": session_id, "user": user}
        rows = await self._connections.fetch(_TAKE, keys)
        return Confirmation(*rows[0]) if rows else None

    async def pending(self, session_id: str, user: str, now_ms: int) -> Sequence[Confirmation]:
        keys = {"session_id": session_id, "user": user, "now_ms": now_ms}
        return [Confirmation(*row) for row in await self._connections.fetch(_PENDING, keys)]

    async def rehash(self, old_hash: str, new_hash: str, session_id: str, user: str) -> bool:
        keys = {"old_hash": old_hash, "new_hash": new_hash, "of_session": session_id, "of_user": user}
        return bool(await self._connections.change(_REHASH, keys))

    async def sweep(self, now_ms: int) -> int:
        return await self._connections.change(_SWEEP, {"now_ms": now_ms})

    async def clear(self, user: str) -> int:
        return await self._connections.change(_CLEAR_CONFIRMATIONS, {"owner": user})


_APPEND: Final = insert(audit)
_READ: Final = (
    select(audit.c.seq, audit.c.line)
    .where(audit.c.seq > bindparam("after"), audit.c.ts_ms >= bindparam("since_ms"))
    .order_by(audit.c.seq)
    .limit(bindparam("count"))
)
_DELETE_LINES_BEFORE: Final = delete_some(audit, audit.c.ts_ms < bindparam("at_ms"))
_DECODER: Final = json.Decoder(AuditLine)


def _append(connection: Connection, rows: Sequence[Params]) -> None:
    # Without the lock, a number could appear after a higher one, and a reader that continues would never see its line.
    lock(connection, "audit")
    connection.execute(_APPEND, rows)


class SqlAuditStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def append(self, lines: Sequence[AuditLine]) -> None:
        if lines:
            rows = [_row(line) for line in lines]
            await self._connections.in_transaction(lambda connection: _append(connection, rows))

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        rows = await self._connections.fetch(_READ, {"after": after, "since_ms": since_ms, "count": limit})
        return [(seq, _DECODER.decode(line)) for seq, line in rows]

    async def delete_before(self, at_ms: int) -> int:
        return await delete_in_batches(self._connections, _DELETE_LINES_BEFORE, {"at_ms": at_ms})


def _row(line: AuditLine) -> dict[str, Any]:
    return {
        "ts_ms": line.ts_ms,
        "line": json.encode(line).decode(),
        "session": line.session,
        "user": line.user,
        "conversation": line.conversation,
        "tool": line.tool,
        "outcome": line.outcome,
    }
