"""What the operator reads, across users, and the events of sessions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import convert, json
from msgspec.structs import asdict
from sqlalchemy import JSON, BigInteger, Column, Select, Table, Text, bindparam, exists, func, insert, or_, select
from sqlalchemy.types import TypeEngine

from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Place, StoredTurn, VoiceCall
from antiphon.storage.events import SessionEvent
from antiphon.storage.overview import AuditFilter, UserActivity
from antiphon.storage.sessions import SessionRecord
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.knowledge import SqlKnowledgeStore
from antiphon.storage.sql.tables import audit, conversations, session_events, sessions, turns, voice_calls

_EVENT: Final[Mapping[str, TypeEngine[Any]]] = {
    "conversation_id": Text(),
    "session_id": Text(),
    "at_ms": BigInteger(),
    "kind": Text(),
    "data": JSON(),
}
# Without the condition, an event of a conversation that is not stored yet, or no longer, would fail the whole batch.
_APPEND: Final = insert(session_events).from_select(
    list(_EVENT),
    select(*(bindparam(name, type_=type_) for name, type_ in _EVENT.items())).where(
        exists().where(conversations.c.id == bindparam("conversation_id", type_=Text()))
    ),
)
_EVENTS: Final = (
    select(*(session_events.c[name] for name in _EVENT))
    .where(session_events.c.conversation_id == bindparam("conversation"))
    .order_by(session_events.c.seq.desc())
    .limit(bindparam("count"))
)


class SqlEventStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def append(self, events: Sequence[SessionEvent]) -> None:
        if events:
            await self._connections.change_all(_APPEND, [asdict(event) for event in events])

    async def list(
        self, conversation_id: str, limit: int, *, since_ms: int = 0, until_ms: int | None = None
    ) -> Sequence[SessionEvent]:
        wanted = _EVENTS.where(session_events.c.at_ms >= since_ms)
        if until_ms is not None:
            wanted = wanted.where(session_events.c.at_ms < until_ms)
        rows = await self._connections.fetch(wanted, {"conversation": conversation_id, "count": limit})
        return [SessionEvent(*row) for row in reversed(rows)]


_CONVERSATION_FIELDS: Final = [column for column in conversations.c if column.name != "last_seq"]
_CONVERSATION: Final = select(*_CONVERSATION_FIELDS).where(conversations.c.id == bindparam("conversation"))
_CALLS: Final = (
    select(voice_calls)
    .where(voice_calls.c.user == bindparam("owner"), voice_calls.c.conversation_id == bindparam("conversation"))
    .order_by(voice_calls.c.started_ms.desc(), voice_calls.c.id)
    .limit(bindparam("count"))
)
_LAST: Final = func.max(conversations.c.updated_ms)
_USERS: Final = (
    select(conversations.c.user, func.count(), _LAST)
    .group_by(conversations.c.user)
    .order_by(_LAST.desc(), conversations.c.user)
    .limit(bindparam("count"))
)
_DECODER: Final = json.Decoder(AuditLine)


class SqlOverviewStore:
    def __init__(self, readers: Connections, knowledge: SqlKnowledgeStore) -> None:
        self._readers = readers
        self._knowledge = knowledge

    async def sessions(
        self, limit: int, *, user: str | None = None, after: Place | None = None
    ) -> Sequence[SessionRecord]:
        wanted = _newest(sessions, list(sessions.c), user, after).limit(limit)
        return [SessionRecord(*row) for row in await self._readers.fetch(wanted, {})]

    async def conversations(
        self, limit: int, *, user: str | None = None, after: Place | None = None
    ) -> Sequence[Conversation]:
        wanted = _newest(conversations, _CONVERSATION_FIELDS, user, after).limit(limit)
        return [Conversation(*row) for row in await self._readers.fetch(wanted, {})]

    async def conversation(self, id: str) -> Conversation | None:
        rows = await self._readers.fetch(_CONVERSATION, {"conversation": id})
        return Conversation(*rows[0]) if rows else None

    async def turns(self, conversation_id: str, limit: int, before: int | None = None) -> Sequence[StoredTurn]:
        wanted = select(turns).where(turns.c.conversation_id == conversation_id)
        if before is not None:
            wanted = wanted.where(turns.c.seq < before)
        rows = await self._readers.fetch(wanted.order_by(turns.c.seq.desc()).limit(limit), {})
        return [StoredTurn(*row) for row in reversed(rows)]

    async def voice_calls(self, conversation: Conversation, limit: int) -> Sequence[VoiceCall]:
        place = {"owner": conversation.user, "conversation": conversation.id, "count": limit}
        return [convert(row._mapping, VoiceCall) for row in await self._readers.fetch(_CALLS, place)]

    async def users(self, limit: int) -> Sequence[UserActivity]:
        return [UserActivity(*row) for row in await self._readers.fetch(_USERS, {"count": limit})]

    async def audit(
        self, wanted: AuditFilter, limit: int, before: int | None = None
    ) -> Sequence[tuple[int, AuditLine]]:
        found = select(audit.c.seq, audit.c.line).order_by(audit.c.seq.desc()).limit(limit)
        for name in ("user", "session", "conversation", "tool", "outcome"):
            value = getattr(wanted, name)
            if value is not None:
                found = found.where(audit.c[name] == value)
        if wanted.since_ms is not None:
            found = found.where(audit.c.ts_ms >= wanted.since_ms)
        if wanted.until_ms is not None:
            found = found.where(audit.c.ts_ms < wanted.until_ms)
        if before is not None:
            found = found.where(audit.c.seq < before)
        return [(seq, _DECODER.decode(line)) for seq, line in await self._readers.fetch(found, {})]

    async def record_counts(self) -> Mapping[str, int]:
        return await self._knowledge.counts_by_namespace()


def _newest(
    table: Table, columns: Sequence[Column[Any]], user: str | None, after: Place | None
) -> Select[*tuple[Any, ...]]:
    found = select(*columns).order_by(table.c.updated_ms.desc(), table.c.id)
    if user is not None:
        found = found.where(table.c.user == user)
    if after is not None:
        found = found.where(
            table.c.updated_ms <= after.updated_ms,
            or_(table.c.updated_ms < after.updated_ms, table.c.id > after.id),
        )
    return found
