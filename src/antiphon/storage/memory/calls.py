"""Runs of tools."""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from antiphon.storage.base import CALLS_KEPT_PER_SESSION, CallRecord

SESSIONS_KEPT: Final = 10_000
PRUNED_EVERY: Final = 100
"""A session's records are looked through once for so many new ones, not for each."""


class _Session:
    """The calls of one session, oldest first."""

    __slots__ = ("by_hash", "by_id", "by_provider", "prune_at")

    def __init__(self) -> None:
        self.by_id: dict[str, CallRecord] = {}
        self.by_provider: dict[str | None, CallRecord] = {}
        self.by_hash: dict[str | None, CallRecord] = {}
        self.prune_at = CALLS_KEPT_PER_SESSION + PRUNED_EVERY

    def holder(self, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        # None is never a key of these dicts, so a key that was not given finds nothing.
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

    def _use(self, session_id: str) -> _Session:
        """The session, which is from now on the last to be forgotten."""
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
        # A session with a call in progress is passed over, and a few of those must not make every new session slow.
        for session_id in list(islice(self._sessions, 8)):
            if self._sessions[session_id].is_idle():
                del self._sessions[session_id]
                return
            self._sessions.move_to_end(session_id)
