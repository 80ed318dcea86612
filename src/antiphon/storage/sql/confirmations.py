"""Calls that wait for a person. Taking one deletes its row, and only one statement can delete a row."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import bindparam, delete, insert, select, update

from antiphon.storage.base import Confirmation
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.tables import confirmations

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
        # A column's own name is not free for a condition of an UPDATE.
        confirmations.c.token_hash == bindparam("old_hash"),
        confirmations.c.session_id == bindparam("of_session"),
        confirmations.c.user == bindparam("of_user"),
    )
    .values(token_hash=bindparam("new_hash"))
)
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
