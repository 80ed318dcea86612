"""The stores of the tool gate in memory: tool runs, confirmations and the audit."""

from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from antiphon.storage.base import CALLS_KEPT_PER_SESSION, AuditLine, CallRecord, Confirmation

SESSIONS_KEPT: Final = 10_000
PRUNED_EVERY: Final = 100
"""How many new records of a session there are between two prunings."""


class _Session:
    """The calls of one session, oldest first."""

    __slots__ = ("by_hash", "by_id", "by_provider", "prune_at")

    def __init__(self) -> None:
        self.by_id: dict[str, CallRecord] = {}
        self.by_provider: dict[str | None, CallRecord] = {}
        self.by_hash: dict[str | None, CallRecord] = {}
        self.prune_at = CALLS_KEPT_PER_SESSION + PRUNED_EVERY

    def holder(self, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        # None is never a key of these dicts, so a missing key finds nothing.
        one = self.by_provider.get(provider_key)
        other = self.by_hash.get(hash_key)
        if one is None or (other is not None and other.started_ms > one.started_ms):
            return other
        return one

    def put(self, record: CallRecord) -> None:
        self.by_id[record.id] = record
        if record.provider_key is not None:
            self.by_provider[record.provider_key] = record
        if record.hash_key is not None:
            self.by_hash[record.hash_key] = record
        if len(self.by_id) >= self.prune_at:
            self.prune()

    def drop(self, record: CallRecord) -> None:
        del self.by_id[record.id]
        self.by_provider.pop(record.provider_key, None)
        self.by_hash.pop(record.hash_key, None)

    def prune(self) -> None:
        finished = [record for record in self.by_id.values() if record.result is not None]
        for record in finished[:-CALLS_KEPT_PER_SESSION]:
            self.drop(record)
        self.prune_at = len(self.by_id) + PRUNED_EVERY

    def is_idle(self) -> bool:
        return all(record.result is not None for record in self.by_id.values())


class MemoryCallStore:
    def __init__(self, sessions_kept: int = SESSIONS_KEPT) -> None:
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._sessions_kept = sessions_kept

    async def find(self, session_id: str, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        session = self._sessions.get(session_id)
        return None if session is None else session.holder(provider_key, hash_key)

    async def start(self, record: CallRecord) -> CallRecord | None:
        session = self._use(record.session_id)
        in_the_way = session.holder(record.provider_key, record.hash_key) or session.by_id.get(record.id)
        if in_the_way is None:
            session.put(record)
        return in_the_way

    async def restart(self, old: CallRecord, new: CallRecord) -> bool:
        session = self._use(old.session_id)
        stored = session.by_id.get(old.id)
        if stored is None or stored.result is not None or stored.lease_until_ms != old.lease_until_ms:
            return False
        for holder in (session.by_provider.get(new.provider_key), session.by_hash.get(new.hash_key)):
            if holder is not None and holder is not stored:
                return False
        session.drop(stored)
        session.put(new)
        return True

    async def renew(self, records: Sequence[CallRecord], lease_until_ms: int) -> None:
        for record in records:
            session = self._sessions.get(record.session_id)
            stored = None if session is None else session.by_id.get(record.id)
            if session is not None and stored is not None and stored.result is None:
                session.put(replace(stored, lease_until_ms=lease_until_ms))

    async def unfinished(self, session_id: str) -> Sequence[CallRecord]:
        session = self._sessions.get(session_id)
        records = [] if session is None else [each for each in session.by_id.values() if each.result is None]
        return sorted(records, key=lambda record: record.started_ms)

    async def finish(self, record: CallRecord) -> None:
        session = self._use(record.session_id)
        if record.id in session.by_id or session.holder(record.provider_key, record.hash_key) is None:
            session.put(record)

    async def delete_before(self, at_ms: int) -> int:
        sessions = self._sessions.values()
        old = [
            (session, record) for session in sessions for record in session.by_id.values() if record.started_ms < at_ms
        ]
        for session, record in old:
            session.drop(record)
        return len(old)

    async def clear(self, session_ids: Collection[str]) -> int:
        cleared = [self._sessions.pop(each) for each in session_ids if each in self._sessions]
        return sum(len(session.by_id) for session in cleared)

    def _use(self, session_id: str) -> _Session:
        """Returns the session, and makes it the last to be forgotten."""
        sessions = self._sessions
        session = sessions.get(session_id)
        if session is None:
            session = sessions[session_id] = _Session()
            if len(sessions) > self._sessions_kept:
                self._forget_one()
        else:
            sessions.move_to_end(session_id)
        return session

    def _forget_one(self) -> None:
        # Sessions with a call in progress are skipped. Looking at only a few keeps new sessions fast.
        for session_id in list(islice(self._sessions, 8)):
            if self._sessions[session_id].is_idle():
                del self._sessions[session_id]
                return
            self._sessions.move_to_end(session_id)


class MemoryConfirmationStore:
    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], dict[str, Confirmation]] = {}

    async def put(self, confirmation: Confirmation) -> None:
        owner = (confirmation.session_id, confirmation.user)
        self._waiting.setdefault(owner, {})[confirmation.token_hash] = confirmation

    async def take(self, token_hash: str, session_id: str, user: str) -> Confirmation | None:
        owner = (session_id, user)
        waiting = self._waiting.get(owner)
        if waiting is None:
            return None
        confirmation = waiting.pop(token_hash, None)
        if not waiting:
            del self._waiting[owner]
        return confirmation

    async def pending(self, session_id: str, user: str, now_ms: int) -> Sequence[Confirmation]:
        waiting = self._waiting.get((session_id, user))
        return [one for one in waiting.values() if one.expires_ms > now_ms] if waiting else ()

    async def rehash(self, old_hash: str, new_hash: str, session_id: str, user: str) -> bool:
        waiting = self._waiting.get((session_id, user), {})
        if old_hash not in waiting:
            return False
        renamed = {new_hash if key == old_hash else key: one for key, one in waiting.items()}
        renamed[new_hash] = replace(waiting[old_hash], token_hash=new_hash)
        self._waiting[session_id, user] = renamed
        return True

    async def sweep(self, now_ms: int) -> int:
        expired = [one for waiting in self._waiting.values() for one in waiting.values() if one.expires_ms <= now_ms]
        for one in expired:
            await self.take(one.token_hash, one.session_id, one.user)
        return len(expired)

    async def clear(self, user: str) -> int:
        cleared = [self._waiting.pop(owner) for owner in list(self._waiting) if owner[1] == user]
        return sum(map(len, cleared))


AUDIT_LINES_KEPT: Final = 100_000


class MemoryAuditStore:
    def __init__(self, lines_kept: int = AUDIT_LINES_KEPT) -> None:
        self._lines: deque[tuple[int, AuditLine]] = deque(maxlen=lines_kept)
        self._last = 0

    def __len__(self) -> int:
        return len(self._lines)

    async def append(self, lines: Sequence[AuditLine]) -> None:
        self._lines.extend(enumerate(lines, self._last + 1))
        self._last += len(lines)

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        wanted = ((number, line) for number, line in self._lines if number > after and line.ts_ms >= since_ms)
        return list(islice(wanted, limit))

    async def delete_before(self, at_ms: int) -> int:
        kept = [numbered for numbered in self._lines if numbered[1].ts_ms >= at_ms]
        deleted = len(self._lines) - len(kept)
        self._lines = deque(kept, self._lines.maxlen)
        return deleted
