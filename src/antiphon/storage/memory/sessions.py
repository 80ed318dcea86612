"""Sessions and the messages to their clients in memory."""

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from antiphon.storage.base import StorageError
from antiphon.storage.sessions import CHARACTERS_KEPT, MESSAGES_KEPT, Fence, Fenced, SentMessages, SessionRecord


class Outbox:
    """The newest messages of one session, oldest first."""

    __slots__ = ("_characters", "_messages")

    def __init__(self) -> None:
        self._messages: deque[tuple[int, str]] = deque()
        self._characters = 0

    def add(self, messages: SentMessages) -> None:
        first_n = min((n for n, _ in messages), default=0)
        while messages and self._messages and self._messages[-1][0] >= first_n:
            self._characters -= len(self._messages.pop()[1])
        self._messages.extend(messages)
        self._characters += sum(len(text) for _, text in messages)
        while len(self._messages) > MESSAGES_KEPT or self._newer_characters() >= CHARACTERS_KEPT:
            self._drop_oldest()

    def after(self, last_n: int) -> SentMessages:
        return [message for message in self._messages if message[0] > last_n]

    def clear(self) -> None:
        self._messages.clear()
        self._characters = 0

    def _newer_characters(self) -> int:
        """Counts all messages but the oldest: the newest is kept even if it alone exceeds the limit."""
        return self._characters - len(self._messages[0][1]) if self._messages else 0

    def _drop_oldest(self) -> None:
        _, text = self._messages.popleft()
        self._characters -= len(text)


class MemorySessionStore:
    def __init__(self) -> None:
        self._records: dict[str, SessionRecord] = {}
        self._ids: dict[str, str] = {}
        self._outboxes: dict[str, Outbox] = {}

    async def begin(self, record: SessionRecord) -> None:
        if self._records.get(record.id) == record:
            return
        if record.id in self._records or record.handle_hash in self._ids:
            raise StorageError(f"There is a session {record.id} already, or one with its handle.")
        self._records[record.id] = record
        self._ids[record.handle_hash] = record.id
        if record.previous_handle_hash is not None:
            self._ids[record.previous_handle_hash] = record.id
        self._outboxes[record.id] = Outbox()

    async def save(self, record: SessionRecord) -> None:
        self.check(Fence(record.id, record.lease_token))
        stored = self._records[record.id]
        self._records[record.id] = replace(
            record,
            user=stored.user,
            handle_hash=stored.handle_hash,
            previous_handle_hash=stored.previous_handle_hash,
            lease_owner=stored.lease_owner,
            lease_until_ms=stored.lease_until_ms,
        )

    async def rotate(
        self, old_handle_hash: str, new_handle_hash: str, user: str, now_ms: int, expires_ms: int
    ) -> SessionRecord | None:
        stored = self._records.get(self._ids.get(old_handle_hash, ""))
        if stored is None or stored.user != user or stored.handle_expires_ms <= now_ms:
            return None
        for unused in {stored.handle_hash, stored.previous_handle_hash} - {old_handle_hash, None}:
            del self._ids[str(unused)]
        self._ids[new_handle_hash] = stored.id
        renewed = replace(
            stored,
            handle_hash=new_handle_hash,
            previous_handle_hash=old_handle_hash,
            handle_expires_ms=expires_ms,
            updated_ms=now_ms,
        )
        self._records[stored.id] = renewed
        return renewed

    async def settle_handle(self, session_id: str, lease_token: int) -> None:
        stored = self._records.get(session_id)
        if stored is None or stored.lease_token != lease_token or stored.previous_handle_hash is None:
            return
        del self._ids[stored.previous_handle_hash]
        self._records[session_id] = replace(stored, previous_handle_hash=None)

    async def take_lease(self, session_id: str, owner: str, now_ms: int, until_ms: int) -> SessionRecord:
        stored = self._records.get(session_id)
        if stored is None:
            raise Fenced(session_id)
        token = stored.lease_token + 1
        taken = replace(stored, lease_owner=owner, lease_token=token, lease_until_ms=until_ms, updated_ms=now_ms)
        self._records[session_id] = taken
        return taken

    async def claim(self, record: SessionRecord) -> SessionRecord | None:
        stored = self._records.get(record.id)
        if stored is None:
            await self.begin(record)
            return record
        if stored.lease_until_ms > record.updated_ms and stored.lease_owner != record.lease_owner:
            return None
        return await self.take_lease(record.id, record.lease_owner, record.updated_ms, record.lease_until_ms)

    async def renew(self, session_id: str, lease_token: int, until_ms: int) -> bool:
        stored = self._records.get(session_id)
        if stored is None or stored.lease_token != lease_token:
            return False
        self._records[session_id] = replace(stored, lease_until_ms=until_ms)
        return True

    async def holders(self, now_ms: int, user: str | None = None) -> Sequence[str]:
        held = [each for each in self._records.values() if each.lease_until_ms > now_ms]
        return list({each.lease_owner for each in held if user in (None, each.user)})

    async def held_in(self, conversation_id: str, now_ms: int) -> Sequence[SessionRecord]:
        there = [each for each in self._records.values() if each.conversation_id == conversation_id]
        return [each for each in there if each.lease_until_ms > now_ms]

    async def end(self, session_id: str, lease_token: int | None = None) -> bool:
        stored = self._records.get(session_id)
        if stored is None or lease_token not in (None, stored.lease_token):
            return False
        del self._records[session_id], self._outboxes[session_id], self._ids[stored.handle_hash]
        if stored.previous_handle_hash is not None:
            del self._ids[stored.previous_handle_hash]
        return True

    async def end_all(self, user: str) -> int:
        own = [each.id for each in self._records.values() if each.user == user]
        for session_id in own:
            await self.end(session_id)
        return len(own)

    async def sweep(self, now_ms: int) -> int:
        left = [
            each.id for each in self._records.values() if max(each.handle_expires_ms, each.lease_until_ms) <= now_ms
        ]
        for session_id in left:
            await self.end(session_id)
        return len(left)

    def all(self) -> Sequence[SessionRecord]:
        """Returns the sessions of all users, in any order."""
        return list(self._records.values())

    def check(self, fence: Fence | None) -> None:
        """Raises `Fenced` for a writer that has lost its lease."""
        if fence is None:
            return
        stored = self._records.get(fence.session_id)
        if stored is None or stored.lease_token != fence.lease_token:
            raise Fenced(fence.session_id)

    def outbox(self, session_id: str) -> Outbox | None:
        return self._outboxes.get(session_id)


class MemoryMessageStore:
    def __init__(self, sessions: MemorySessionStore) -> None:
        self._sessions = sessions

    async def append_many(self, session_id: str, messages: SentMessages, lease_token: int) -> None:
        self._sessions.check(Fence(session_id, lease_token))
        outbox = self._sessions.outbox(session_id)
        if outbox is not None:
            outbox.add(messages)

    async def after(self, session_id: str, last_n: int) -> SentMessages:
        outbox = self._sessions.outbox(session_id)
        return [] if outbox is None else outbox.after(last_n)
