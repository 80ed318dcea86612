"""Sessions and the messages to their clients, with the fence that is checked in every write for a session."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import Connection, Executable, and_, bindparam, delete, func, insert, or_, select, update

from antiphon.storage.sessions import CHARACTERS_KEPT, MESSAGES_KEPT, Fence, Fenced, SentMessages, SessionRecord
from antiphon.storage.sql.connections import Connections, KeyTakenError, Params
from antiphon.storage.sql.pruning import PARENT_ROWS, PruneCounter, delete_in_batches, delete_some
from antiphon.storage.sql.tables import messages, sessions

# Postgres locks the row. SQLite ignores the clause and does not need it: its transactions exclude all other writers.
_HOLD: Final = (
    select(sessions.c.id)
    .where(sessions.c.id == bindparam("session"), sessions.c.lease_token == bindparam("token"))
    .with_for_update()
)


def check_fence(connection: Connection, fence: Fence | None) -> None:
    """Raises `Fenced` if the lease was lost; otherwise it cannot be taken until the transaction ends."""
    if fence is None:
        return
    if connection.scalar(_HOLD, {"session": fence.session_id, "token": fence.lease_token}) is None:
        raise Fenced(fence.session_id)


async def change_fenced(connections: Connections, fence: Fence | None, statement: Executable, params: Params) -> int:
    """Runs one statement if the lease is still held, and returns how many rows it changed. Raises `Fenced`."""

    def write(connection: Connection) -> int:
        check_fence(connection, fence)
        return connection.execute(statement, params).rowcount

    return await connections.in_transaction(write)


PRUNED_EVERY: Final = CHARACTERS_KEPT // 8
LEAST_COST: Final = CHARACTERS_KEPT // MESSAGES_KEPT
"""A short message counts as this many characters, so that one count covers both limits."""

_NOT_SAVED: Final = (
    "id",
    "user",
    "handle_hash",
    "previous_handle_hash",
    "lease_owner",
    "lease_token",
    "lease_until_ms",
)

_THIS: Final = sessions.c.id == bindparam("session")
_HELD: Final = (_THIS, sessions.c.lease_token == bindparam("token"))

_BEGIN: Final = insert(sessions)
_BEGUN: Final = select(sessions.c.lease_owner, sessions.c.lease_token, sessions.c.handle_hash).where(
    sessions.c.id == bindparam("session")
)
_SAVE: Final = update(sessions).where(*_HELD)
_ROTATE: Final = (
    update(sessions)
    .where(
        or_(
            sessions.c.handle_hash == bindparam("old_handle_hash"),
            sessions.c.previous_handle_hash == bindparam("old_handle_hash"),
        ),
        sessions.c.user == bindparam("owner"),
        sessions.c.handle_expires_ms > bindparam("now_ms"),
    )
    .returning(*sessions.c)
)
_TAKE_LEASE: Final = update(sessions).where(_THIS).values(lease_token=sessions.c.lease_token + 1).returning(*sessions.c)
_RENEW: Final = update(sessions).where(*_HELD)
_HELD_NOW: Final = sessions.c.lease_until_ms > bindparam("now_ms")
_HOLDERS: Final = select(sessions.c.lease_owner).where(_HELD_NOW).distinct()
_HELD_IN: Final = select(*sessions.c).where(sessions.c.conversation_id == bindparam("conversation"), _HELD_NOW)
_SETTLE_HANDLE: Final = update(sessions).where(*_HELD).values(previous_handle_hash=None)
_END: Final = delete(sessions).where(_THIS)
_END_HELD: Final = delete(sessions).where(*_HELD)
_END_ALL: Final = delete(sessions).where(sessions.c.user == bindparam("owner"))
_SWEEP: Final = delete_some(
    sessions,
    and_(sessions.c.handle_expires_ms <= bindparam("now_ms"), sessions.c.lease_until_ms <= bindparam("now_ms")),
    PARENT_ROWS,
)

_OF_SESSION: Final = messages.c.session_id == bindparam("session")
_RANKED: Final = (
    select(
        messages.c.n,
        func.row_number().over(order_by=messages.c.n.desc()).label("place"),
        (
            func.sum(func.length(messages.c.text)).over(order_by=messages.c.n.desc()) - func.length(messages.c.text)
        ).label("newer_characters"),
    )
    .where(_OF_SESSION)
    .subquery()
)

_AFTER: Final = (
    select(messages.c.n, messages.c.text).where(_OF_SESSION, messages.c.n > bindparam("last_n")).order_by(messages.c.n)
)
_CLEAR: Final = delete(messages).where(_OF_SESSION)
_PRUNE: Final = delete(messages).where(
    _OF_SESSION,
    messages.c.n
    <= select(func.max(_RANKED.c.n))
    .where(or_(_RANKED.c.place > MESSAGES_KEPT, _RANKED.c.newer_characters >= CHARACTERS_KEPT))
    .scalar_subquery(),
)


class SqlSessionStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        claimed = connections.insert(sessions)
        new = claimed.excluded
        # One statement, so that of two processes that claim a session at the same moment, one finds the other's lease.
        self._claim = claimed.on_conflict_do_update(
            index_elements=[sessions.c.id],
            set_={
                sessions.c.lease_owner: new.lease_owner,
                sessions.c.lease_token: sessions.c.lease_token + 1,
                sessions.c.lease_until_ms: new.lease_until_ms,
                sessions.c.updated_ms: new.updated_ms,
            },
            where=or_(sessions.c.lease_until_ms <= new.updated_ms, sessions.c.lease_owner == new.lease_owner),
        ).returning(*sessions.c)

    async def begin(self, record: SessionRecord) -> None:
        try:
            await self._connections.change(_BEGIN, asdict(record))
        except KeyTakenError:
            rows = await self._connections.fetch(_BEGUN, {"session": record.id})
            if [tuple(row) for row in rows] != [(record.lease_owner, record.lease_token, record.handle_hash)]:
                raise
            # An earlier attempt was committed, although the connection was lost before the server could say so.
            await self.save(record)

    async def save(self, record: SessionRecord) -> None:
        await self._connections.autocommit(lambda connection: save_record(connection, record))

    async def rotate(
        self, old_handle_hash: str, new_handle_hash: str, user: str, now_ms: int, expires_ms: int
    ) -> SessionRecord | None:
        keys = {"old_handle_hash": old_handle_hash, "owner": user, "now_ms": now_ms}
        renewed = {
            "handle_hash": new_handle_hash,
            "previous_handle_hash": old_handle_hash,
            "handle_expires_ms": expires_ms,
            "updated_ms": now_ms,
        }
        rows = await self._connections.fetch(_ROTATE, keys | renewed)
        return SessionRecord(*rows[0]) if rows else None

    async def settle_handle(self, session_id: str, lease_token: int) -> None:
        await self._connections.change(_SETTLE_HANDLE, {"session": session_id, "token": lease_token})

    async def take_lease(self, session_id: str, owner: str, now_ms: int, until_ms: int) -> SessionRecord:
        lease = {"session": session_id, "lease_owner": owner, "lease_until_ms": until_ms, "updated_ms": now_ms}
        rows = await self._connections.fetch(_TAKE_LEASE, lease)
        if not rows:
            raise Fenced(session_id)
        return SessionRecord(*rows[0])

    async def claim(self, record: SessionRecord) -> SessionRecord | None:
        rows = await self._connections.fetch(self._claim, asdict(record))
        return SessionRecord(*rows[0]) if rows else None

    async def renew(self, session_id: str, lease_token: int, until_ms: int) -> bool:
        lease = {"session": session_id, "token": lease_token, "lease_until_ms": until_ms}
        return bool(await self._connections.change(_RENEW, lease))

    async def holders(self, now_ms: int, user: str | None = None) -> Sequence[str]:
        wanted = _HOLDERS if user is None else _HOLDERS.where(sessions.c.user == bindparam("owner"))
        return [row.lease_owner for row in await self._connections.fetch(wanted, {"now_ms": now_ms, "owner": user})]

    async def held_in(self, conversation_id: str, now_ms: int) -> Sequence[SessionRecord]:
        rows = await self._connections.fetch(_HELD_IN, {"conversation": conversation_id, "now_ms": now_ms})
        return [SessionRecord(*row) for row in rows]

    async def end(self, session_id: str, lease_token: int | None = None) -> bool:
        end = _END if lease_token is None else _END_HELD
        return bool(await self._connections.change(end, {"session": session_id, "token": lease_token}))

    async def end_all(self, user: str) -> int:
        return await self._connections.change(_END_ALL, {"owner": user})

    async def sweep(self, now_ms: int) -> int:
        return await delete_in_batches(self._connections, _SWEEP, {"now_ms": now_ms})


class SqlMessageStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._unpruned = PruneCounter(PRUNED_EVERY)
        insertion = connections.insert(messages)
        # A message that is there already is one of an attempt that was committed, although the connection was lost
        # before the server could say so. The process took it back, and used its number again.
        self._append = insertion.on_conflict_do_update(
            index_elements=[messages.c.session_id, messages.c.n], set_={messages.c.text: insertion.excluded.text}
        )

    async def append_many(self, session_id: str, messages: SentMessages, lease_token: int) -> None:
        def write(connection: Connection) -> None:
            check_fence(connection, Fence(session_id, lease_token))
            self.write(connection, session_id, messages)

        await self._connections.in_transaction(write)

    def write(self, connection: Connection, session_id: str, messages: SentMessages) -> None:
        """Stores messages, in the transaction of the caller, who has checked the fence."""
        if messages:
            connection.execute(self._append, [{"session_id": session_id, "n": n, "text": text} for n, text in messages])
        if self._unpruned.add(session_id, sum(max(len(text), LEAST_COST) for _, text in messages)):
            connection.execute(_PRUNE, {"session": session_id})

    async def after(self, session_id: str, last_n: int) -> SentMessages:
        rows = await self._connections.fetch(_AFTER, {"session": session_id, "last_n": last_n})
        return [(n, text) for n, text in rows]

    def clear(self, connection: Connection, session_id: str) -> None:
        """Deletes all messages of a session, in the transaction of the caller."""
        connection.execute(_CLEAR, {"session": session_id})


def save_record(connection: Connection, record: SessionRecord) -> None:
    """Stores what the holder of the lease may change. Raises `Fenced`."""
    saved = {name: value for name, value in asdict(record).items() if name not in _NOT_SAVED}
    held = {"session": record.id, "token": record.lease_token}
    if not connection.execute(_SAVE, saved | held).rowcount:
        raise Fenced(record.id)
