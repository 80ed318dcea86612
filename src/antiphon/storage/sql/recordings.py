"""Recordings. The database deletes them with their conversation."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import convert, to_builtins
from msgspec.structs import asdict
from sqlalchemy import Connection, Executable, Row, Text, and_, bindparam, insert, or_, select, update

from antiphon.storage.conversations import ConversationGone
from antiphon.storage.recordings import Recording
from antiphon.storage.sql.connections import Connections, KeyTakenError, Params
from antiphon.storage.sql.pruning import PARENT_ROWS, delete_some
from antiphon.storage.sql.tables import conversations, recording_parts, recordings

_OWNED: Final = recordings.c.user == bindparam("owner")
# PostgreSQL must be told the type of a parameter that is only compared with NULL.
_CONVERSATION: Final = bindparam("conversation", type_=Text)
_ID: Final = bindparam("recording", type_=Text)
_CALL: Final = bindparam("call", type_=Text)
_OF_CONVERSATION: Final = or_(_CONVERSATION.is_(None), recordings.c.conversation_id == _CONVERSATION)
_OF_ID: Final = or_(_ID.is_(None), recordings.c.id == _ID)
_OF_CALL: Final = or_(_CALL.is_(None), recordings.c.call_id == _CALL)
_OLDEST_FIRST: Final = (recordings.c.started_ms, recordings.c.id)

_HAS_CONVERSATION: Final = select(conversations.c.id).where(conversations.c.id == bindparam("conversation"))
_ADD: Final = insert(recordings)
_SAVE: Final = (
    update(recordings)
    .where(recordings.c.id == bindparam("recording"))
    .values(
        duration_ms=bindparam("new_duration_ms"),
        size_bytes=bindparam("new_size_bytes"),
        marks=bindparam("new_marks", type_=recordings.c.marks.type),
    )
)
_GET: Final = select(recordings).where(recordings.c.id == bindparam("recording"), _OWNED)
_LIST: Final = select(recordings).where(_OWNED, _OF_CONVERSATION).order_by(*_OLDEST_FIRST)
_FIND: Final = select(recordings).where(recordings.c.file.in_(bindparam("files", expanding=True)))
# In batches, since the database deletes the parts of the sound with each recording: 88 of them for an hour.
_DELETE: Final = delete_some(recordings, and_(_OWNED, _OF_ID, _OF_CONVERSATION, _OF_CALL), PARENT_ROWS).returning(
    *recordings.c
)
_DELETE_BEFORE: Final = delete_some(recordings, recordings.c.started_ms < bindparam("at_ms"), PARENT_ROWS).returning(
    *recordings.c
)

_PART: Final = select(recording_parts.c.data).where(
    recording_parts.c.recording_id == _ID, recording_parts.c.number == bindparam("part")
)
_MARK_STORED: Final = update(recordings).where(recordings.c.id == _ID).values(is_stored=True)


class SqlRecordingStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._add_part = connections.insert(recording_parts).on_conflict_do_nothing()

    @property
    def keeps_sound(self) -> bool:
        """Processes with one SQLite file are on one machine, where they share the folder."""
        return self._connections.dialect != "sqlite"

    async def add(self, recording: Recording) -> None:
        row = asdict(recording) | {"marks": to_builtins(recording.marks)}

        def write(connection: Connection) -> None:
            # The foreign key refuses it, too, but with an error that says nothing about the conversation.
            if connection.scalar(_HAS_CONVERSATION, {"conversation": recording.conversation_id}) is None:
                raise ConversationGone(recording.conversation_id)
            connection.execute(_ADD, row)

        await self._connections.in_transaction(write)

    async def save(self, recording: Recording) -> bool:
        changed = {
            "recording": recording.id,
            "new_duration_ms": recording.duration_ms,
            "new_size_bytes": recording.size_bytes,
            "new_marks": to_builtins(recording.marks),
        }
        return bool(await self._connections.change(_SAVE, changed))

    async def get(self, id: str, user: str) -> Recording | None:
        found = _read(await self._connections.fetch(_GET, {"recording": id, "owner": user}))
        return found[0] if found else None

    async def list(self, user: str, conversation_id: str | None = None) -> Sequence[Recording]:
        return _read(await self._connections.fetch(_LIST, {"owner": user, "conversation": conversation_id}))

    async def find(self, files: Sequence[str]) -> Sequence[Recording]:
        return _read(await self._connections.fetch(_FIND, {"files": [*files]}))

    async def delete(
        self, user: str, *, id: str | None = None, conversation_id: str | None = None, call_id: str | None = None
    ) -> Sequence[Recording]:
        wanted = {"owner": user, "recording": id, "conversation": conversation_id, "call": call_id}
        return await self._delete(_DELETE, wanted)

    async def delete_before(self, at_ms: int) -> Sequence[Recording]:
        return await self._delete(_DELETE_BEFORE, {"at_ms": at_ms})

    async def _delete(self, statement: Executable, params: Params) -> Sequence[Recording]:
        deleted: list[Recording] = []
        while rows := await self._connections.fetch(statement, params):
            deleted += _read(rows)
        return sorted(deleted, key=lambda each: (each.started_ms, each.id))

    async def add_part(self, id: str, number: int, data: bytes) -> bool:
        try:
            await self._connections.change(self._add_part, {"recording_id": id, "number": number, "data": data})
        except KeyTakenError:
            # A part that is there already is no conflict, so it is the foreign key.
            return False
        return True

    async def part(self, id: str, number: int) -> bytes | None:
        for (data,) in await self._connections.fetch(_PART, {"recording": id, "part": number}):
            return bytes(data)
        return None

    async def mark_stored(self, id: str) -> bool:
        return bool(await self._connections.change(_MARK_STORED, {"recording": id}))


def _read(rows: Sequence[Row[*tuple[Any, ...]]]) -> list[Recording]:
    return [convert(row._mapping, Recording) for row in rows]
