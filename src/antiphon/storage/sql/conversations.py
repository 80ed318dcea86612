"""Conversations and voice calls. A turn is stored, numbered and fenced in one transaction."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import convert
from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from antiphon.storage.conversations import Conversation, ConversationGone, Place, StoredTurn, Turn, VoiceCall
from antiphon.storage.sessions import Fence, SentMessages, SessionRecord
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.pruning import PARENT_ROWS, delete_in_batches, delete_some
from antiphon.storage.sql.sessions import SqlMessageStore, change_fenced, check_fence, save_record
from antiphon.storage.sql.tables import conversations, session_events, turns, voice_calls

_FIELDS: Final = [column for column in conversations.c if column.name != "last_seq"]
_OWNED: Final = (conversations.c.id == bindparam("conversation"), conversations.c.user == bindparam("owner"))

_CREATE: Final = insert(conversations)
_GET: Final = select(*_FIELDS).where(*_OWNED)
_NEWEST: Final = (
    select(*_FIELDS)
    .where(conversations.c.user == bindparam("owner"))
    .order_by(conversations.c.updated_ms.desc(), conversations.c.id)
    .limit(bindparam("count"))
)
_NEWEST_AFTER: Final = _NEWEST.where(
    conversations.c.updated_ms <= bindparam("after_ms"),
    or_(conversations.c.updated_ms < bindparam("after_ms"), conversations.c.id > bindparam("after_id")),
)
_NUMBER: Final = (
    update(conversations)
    .where(conversations.c.id == bindparam("conversation"))
    .values(last_seq=conversations.c.last_seq + 1, updated_ms=bindparam("at_ms"))
    .returning(conversations.c.last_seq)
)
_DELETE: Final = delete(conversations).where(*_OWNED)
_DELETE_BEFORE: Final = delete_some(conversations, conversations.c.updated_ms < bindparam("at_ms"), PARENT_ROWS)

_APPEND: Final = insert(turns)
_AMEND: Final = update(turns).where(
    turns.c.conversation_id == bindparam("conversation"), turns.c.seq == bindparam("number")
)
_TURNS: Final = (
    select(turns)
    .where(turns.c.conversation_id == bindparam("conversation"), turns.c.seq > bindparam("after_seq"))
    .order_by(turns.c.seq)
)
_LAST_SEQS: Final = (
    select(turns.c.conversation_id, func.max(turns.c.seq).label("last_seq"))
    .where(turns.c.conversation_id.in_(bindparam("ids", expanding=True)))
    .group_by(turns.c.conversation_id)
)
_FIRST_TURNS: Final = _TURNS.limit(bindparam("count"))
_CLEAR: Final = delete(turns).where(turns.c.conversation_id == bindparam("conversation"))
_CLEAR_EVENTS: Final = delete(session_events).where(session_events.c.conversation_id == bindparam("conversation"))

_OWN_CALL: Final = (voice_calls.c.id == bindparam("call"), voice_calls.c.user == bindparam("owner"))

_BEGIN_CALL: Final = insert(voice_calls)
_END_CALL: Final = update(voice_calls).where(voice_calls.c.id == bindparam("call"), voice_calls.c.ended_ms.is_(None))
_SET_SUMMARY: Final = (
    update(voice_calls)
    .where(voice_calls.c.id == bindparam("call"), voice_calls.c.ended_ms.is_not(None))
    .values(summary=bindparam("text"))
)
_GET_CALL: Final = select(voice_calls).where(*_OWN_CALL)
_NEWEST_CALLS: Final = (
    select(voice_calls)
    .where(voice_calls.c.user == bindparam("owner"))
    .order_by(voice_calls.c.started_ms.desc(), voice_calls.c.id)
    .limit(bindparam("count"))
)
_LATEST_ENDED: Final = _NEWEST_CALLS.where(
    voice_calls.c.conversation_id == bindparam("conversation"), voice_calls.c.ended_ms.is_not(None)
)
_DELETE_CALL: Final = delete(voice_calls).where(*_OWN_CALL)
_CLEAR_CALLS: Final = delete(voice_calls).where(voice_calls.c.user == bindparam("owner"))
_DELETE_CALLS_BEFORE: Final = delete_some(voice_calls, voice_calls.c.started_ms < bindparam("at_ms"))


class SqlConversationStore:
    def __init__(self, connections: Connections, messages: SqlMessageStore) -> None:
        self._connections = connections
        self._messages = messages

    async def create(self, conversation: Conversation) -> None:
        await self._connections.change(_CREATE, asdict(conversation) | {"last_seq": 0})

    async def get(self, id: str, user: str) -> Conversation | None:
        rows = await self._connections.fetch(_GET, {"conversation": id, "owner": user})
        return Conversation(*rows[0]) if rows else None

    async def list(self, user: str, limit: int, after: Place | None = None) -> Sequence[Conversation]:
        wanted, params = _NEWEST, {"owner": user, "count": limit}
        if after is not None:
            wanted, params = _NEWEST_AFTER, params | {"after_ms": after.updated_ms, "after_id": after.id}
        rows = await self._connections.fetch(wanted, params)
        return [Conversation(*row) for row in rows]

    async def append_many(
        self,
        conversation_id: str,
        turns: Sequence[Turn],
        fence: Fence | None,
        *,
        sent: SentMessages = (),
        record: SessionRecord | None = None,
    ) -> Sequence[int]:
        def write(connection: Connection) -> list[int]:
            check_fence(connection, fence)
            self._tell(connection, fence, sent)
            if record is not None:
                save_record(connection, record)
            numbers: list[int] = []
            for turn in turns:
                seq: int | None = connection.scalar(_NUMBER, {"conversation": conversation_id, "at_ms": turn.at_ms})
                if seq is None:
                    raise ConversationGone(conversation_id)
                connection.execute(_APPEND, asdict(turn) | {"conversation_id": conversation_id, "seq": seq})
                numbers.append(seq)
            return numbers

        return await self._connections.in_transaction(write)

    async def amend(
        self, conversation_id: str, seq: int, turn: Turn, fence: Fence | None, *, sent: SentMessages = ()
    ) -> bool:
        amended = asdict(turn) | {"conversation": conversation_id, "number": seq}

        def write(connection: Connection) -> bool:
            check_fence(connection, fence)
            if not connection.execute(_AMEND, amended).rowcount:
                return False
            self._tell(connection, fence, sent)
            return True

        return await self._connections.in_transaction(write)

    async def turns(self, conversation_id: str, after_seq: int = 0, limit: int | None = None) -> Sequence[StoredTurn]:
        wanted = _TURNS if limit is None else _FIRST_TURNS
        place = {"conversation": conversation_id, "after_seq": after_seq, "count": limit}
        return [StoredTurn(*row) for row in await self._connections.fetch(wanted, place)]

    async def last_seqs(self, ids: Collection[str]) -> Mapping[str, int]:
        rows = await self._connections.fetch(_LAST_SEQS, {"ids": [*ids]})
        return {row.conversation_id: row.last_seq for row in rows}

    async def clear(self, conversation_id: str, fence: Fence | None) -> None:
        def write(connection: Connection) -> None:
            check_fence(connection, fence)
            connection.execute(_CLEAR, {"conversation": conversation_id})
            connection.execute(_CLEAR_EVENTS, {"conversation": conversation_id})
            if fence is not None:
                self._messages.clear(connection, fence.session_id)

        await self._connections.in_transaction(write)

    async def delete(self, id: str, user: str) -> bool:
        return bool(await self._connections.change(_DELETE, {"conversation": id, "owner": user}))

    async def delete_before(self, at_ms: int) -> int:
        return await delete_in_batches(self._connections, _DELETE_BEFORE, {"at_ms": at_ms})

    def _tell(self, connection: Connection, fence: Fence | None, sent: SentMessages) -> None:
        if fence is not None and sent:
            self._messages.write(connection, fence.session_id, sent)


class SqlVoiceCallStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def begin(self, call: VoiceCall, fence: Fence | None) -> None:
        await change_fenced(self._connections, fence, _BEGIN_CALL, asdict(call))

    async def end(self, ended: VoiceCall, fence: Fence | None) -> bool:
        return bool(await change_fenced(self._connections, fence, _END_CALL, asdict(ended) | {"call": ended.id}))

    async def set_summary(self, id: str, summary: str) -> bool:
        return bool(await self._connections.change(_SET_SUMMARY, {"call": id, "text": summary}))

    async def get(self, id: str, user: str) -> VoiceCall | None:
        rows = await self._connections.fetch(_GET_CALL, {"call": id, "owner": user})
        return convert(rows[0]._mapping, VoiceCall) if rows else None

    async def list(self, user: str, limit: int) -> Sequence[VoiceCall]:
        rows = await self._connections.fetch(_NEWEST_CALLS, {"owner": user, "count": limit})
        return [convert(row._mapping, VoiceCall) for row in rows]

    async def latest_ended(self, conversation_id: str, user: str) -> VoiceCall | None:
        place = {"conversation": conversation_id, "owner": user, "count": 1}
        rows = await self._connections.fetch(_LATEST_ENDED, place)
        return convert(rows[0]._mapping, VoiceCall) if rows else None

    async def delete(self, id: str, user: str) -> bool:
        return bool(await self._connections.change(_DELETE_CALL, {"call": id, "owner": user}))

    async def clear(self, user: str) -> int:
        return await self._connections.change(_CLEAR_CALLS, {"owner": user})

    async def delete_before(self, at_ms: int) -> int:
        return await delete_in_batches(self._connections, _DELETE_CALLS_BEFORE, {"at_ms": at_ms})
