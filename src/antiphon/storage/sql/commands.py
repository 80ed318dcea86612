"""Commands for sessions that run in other processes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from antiphon.storage.commands import SessionCommand
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.tables import session_commands

_FIELDS: Final = [session_commands.c[name] for name in SessionCommand.__struct_fields__]
_OF_SESSIONS: Final = session_commands.c.session_id.in_(bindparam("sessions", expanding=True))
_OPEN: Final = (
    _OF_SESSIONS,
    session_commands.c.is_taken.is_(False),
    session_commands.c.expires_ms > bindparam("now_ms"),
)

_PUT: Final = insert(session_commands)
_IS_WAITING: Final = select(session_commands.c.id).where(*_OPEN).limit(1)
_TAKE: Final = update(session_commands).where(*_OPEN).values(is_taken=True).returning(*_FIELDS, session_commands.c.seq)
_FINISH: Final = (
    update(session_commands).where(session_commands.c.id == bindparam("command")).values(result=bindparam("done"))
)
_RESULTS: Final = select(session_commands.c.id, session_commands.c.result).where(
    session_commands.c.id.in_(bindparam("ids", expanding=True)), session_commands.c.result.is_not(None)
)
_REMOVE: Final = (
    delete(session_commands).where(session_commands.c.id == bindparam("command")).returning(session_commands.c.is_taken)
)
_SWEEP: Final = delete(session_commands).where(session_commands.c.expires_ms < bindparam("before_ms"))


class SqlCommandStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, command: SessionCommand) -> None:
        await self._connections.change(_PUT, asdict(command) | {"is_taken": False})

    async def take(self, session_ids: Collection[str], now_ms: int) -> Sequence[SessionCommand]:
        keys = {"sessions": [*session_ids], "now_ms": now_ms}

        def write(connection: Connection) -> Sequence[SessionCommand]:
            # Every process looks every second, so it must not write, nor wait for writers, if there is nothing.
            if not connection.execute(_IS_WAITING, keys).first():
                return []
            rows = sorted(connection.execute(_TAKE, keys), key=lambda row: int(row.seq))
            return [SessionCommand(*row[:-1]) for row in rows]

        return await self._connections.autocommit(write)

    async def finish(self, id: str, result: bytes) -> None:
        await self._connections.change(_FINISH, {"command": id, "done": result})

    async def results(self, ids: Collection[str]) -> Mapping[str, bytes]:
        return {row.id: row.result for row in await self._connections.fetch(_RESULTS, {"ids": [*ids]})}

    async def remove(self, id: str) -> bool:
        rows = await self._connections.fetch(_REMOVE, {"command": id})
        return bool(rows) and not rows[0].is_taken

    async def sweep(self, before_ms: int) -> int:
        return await self._connections.change(_SWEEP, {"before_ms": before_ms})
