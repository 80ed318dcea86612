"""The fence, in the transaction of the write that it guards."""

from typing import Final

from sqlalchemy import Connection, Executable, bindparam, select

from antiphon.storage.sessions import Fence, Fenced
from antiphon.storage.sql.connections import Connections, Params
from antiphon.storage.sql.tables import sessions

# Postgres locks the row. SQLite ignores the clause, and needs it not: a transaction there keeps all other writers out.
_HOLD: Final = (
    select(sessions.c.id)
    .where(sessions.c.id == bindparam("session"), sessions.c.lease_token == bindparam("token"))
    .with_for_update()
)


def hold(connection: Connection, fence: Fence | None) -> None:
    """Refuses a writer that was fenced, or keeps the lease from being taken until the transaction has ended."""
    if fence is None:
        return
    if connection.scalar(_HOLD, {"session": fence.session_id, "token": fence.lease_token}) is None:
        raise Fenced(fence.session_id)


async def change_held(connections: Connections, fence: Fence | None, statement: Executable, params: Params) -> int:
    """Runs one statement behind the fence, and says how many rows it touched. Raises `Fenced`."""

    def write(connection: Connection) -> int:
        hold(connection, fence)
        return connection.execute(statement, params).rowcount

    return await connections.together(write)
