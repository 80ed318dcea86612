"""The audit: one row a line, the line itself as JSON, so that a new field of it needs no migration."""

from collections.abc import Sequence
from typing import Final

from msgspec import json
from sqlalchemy import bindparam, insert, select

from antiphon.storage.base import AuditLine
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.sweeping import delete_all, some
from antiphon.storage.sql.tables import audit

_APPEND: Final = insert(audit)
_READ: Final = (
    select(audit.c.seq, audit.c.line)
    .where(audit.c.seq > bindparam("after"), audit.c.ts_ms >= bindparam("since_ms"))
    .order_by(audit.c.seq)
    .limit(bindparam("count"))
)
_DELETE_BEFORE: Final = some(audit, audit.c.ts_ms < bindparam("at_ms"))
_DECODER: Final = json.Decoder(AuditLine)


class SqlAuditStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def append(self, lines: Sequence[AuditLine]) -> None:
        if lines:
            rows = [{"ts_ms": line.ts_ms, "line": json.encode(line).decode()} for line in lines]
            await self._connections.change_all(_APPEND, rows)

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        rows = await self._connections.fetch(_READ, {"after": after, "since_ms": since_ms, "count": limit})
        return [(seq, _DECODER.decode(line)) for seq, line in rows]

    async def delete_before(self, at_ms: int) -> int:
        return await delete_all(self._connections, _DELETE_BEFORE, {"at_ms": at_ms})
