"""The fence, in the transaction of the write that it guards."""

from typing import Final

from sqlalchemy import bindparam, update
from sqlalchemy.ext.asyncio import AsyncConnection

from antiphon.storage.sessions import Fence, Fenced
from antiphon.storage.sql.tables import sessions

_HOLD: Final = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"), sessions.c.lease_token == bindparam("token"))
    .values(lease_token=sessions.c.lease_token)
)


async def hold(connection: AsyncConnection, fence: Fence | None) -> None:
    """Refuses a writer that was fenced, or keeps the lease from being taken until the transaction has ended.

    So it changes the row to what it is: a mere look would not wait for a process that is taking the lease just now.
    """
    if fence is None:
        return
    found = await connection.execute(_HOLD, {"session": fence.session_id, "token": fence.lease_token})
    if not found.rowcount:
        raise Fenced(fence.session_id)
