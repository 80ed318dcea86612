"""Reminders and their rings in memory."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from antiphon.storage.memory.sessions import MemorySessionStore
from antiphon.storage.reminders import Delivery, OpenRing, ReminderRecord, Ring
from antiphon.storage.sessions import Fence, SentMessages


class MemoryReminderStore:
    def __init__(self, sessions: MemorySessionStore) -> None:
        self._sessions = sessions
        self._reminders: dict[str, ReminderRecord] = {}
        self._rings: dict[str, OpenRing] = {}

    async def add(self, record: ReminderRecord, limit: int) -> bool:
        if len(await self.list(record.user)) >= limit:
            return False
        self._reminders[record.id] = record
        return True

    async def list(self, user: str) -> Sequence[ReminderRecord]:
        own = (each for each in self._reminders.values() if each.user == user)
        return sorted(own, key=lambda each: (each.due_ms, each.id))

    async def cancel(self, user: str, ids: Collection[str]) -> Sequence[ReminderRecord]:
        own = [each for each in await self.list(user) if each.id in ids]
        for each in own:
            del self._reminders[each.id]
        return own

    async def next_due(self) -> int | None:
        return min((each.due_ms for each in self._reminders.values()), default=None)

    async def due(self, now_ms: int, limit: int) -> Sequence[ReminderRecord]:
        due = (each for each in self._reminders.values() if each.due_ms <= now_ms)
        return sorted(due, key=lambda each: (each.due_ms, each.id))[:limit]

    async def ring(self, record: ReminderRecord, next_due_ms: int | None, now_ms: int) -> Ring | None:
        stored = self._reminders.get(record.id)
        if stored is None or stored.due_ms != record.due_ms:
            return None
        if next_due_ms is None:
            del self._reminders[record.id]
        else:
            self._reminders[record.id] = replace(stored, due_ms=next_due_ms)
        for each in list(self._rings.values()):
            if each.ring.reminder_id == record.id and each.ring.heard_ms is None and not each.deliveries:
                del self._rings[each.ring.id]
        ring = Ring.of(stored, now_ms)
        self._rings[ring.id] = OpenRing(ring)
        return ring

    async def open_rings(self, users: Collection[str], since_ms: int) -> Sequence[OpenRing]:
        found = [
            each
            for each in self._rings.values()
            if each.ring.user in users and (each.ring.heard_ms is None or each.ring.rung_ms >= since_ms)
        ]
        return sorted(found, key=lambda each: (each.ring.due_ms, each.ring.id))

    async def deliver(self, deliveries: Sequence[Delivery], fence: Fence, sent: SentMessages) -> bool:
        self._sessions.check(fence)
        for each in deliveries:
            known = self._rings.get(each.ring_id)
            if known is None or any(old.session_id == each.session_id for old in known.deliveries):
                return False
        outbox = self._sessions.outbox(fence.session_id)
        if outbox is not None:
            outbox.add(sent)
        for each in deliveries:
            known = self._rings[each.ring_id]
            self._rings[each.ring_id] = replace(known, deliveries=(*known.deliveries, each))
        return True

    async def hear(self, ring_ids: Collection[str], now_ms: int) -> None:
        for id in ring_ids:
            known = self._rings.get(id)
            if known is not None and known.ring.heard_ms is None:
                self._rings[id] = replace(known, ring=replace(known.ring, heard_ms=now_ms))

    async def last_ring(self, user: str, since_ms: int) -> Ring | None:
        own = [each.ring for each in self._rings.values() if each.ring.user == user and each.ring.rung_ms >= since_ms]
        return max(own, key=lambda ring: (ring.due_ms, ring.id), default=None)

    async def clear(self, user: str) -> int:
        self._rings = {id: each for id, each in self._rings.items() if each.ring.user != user}
        return len(await self.cancel(user, [each.id for each in await self.list(user)]))

    async def sweep(self, heard_before_ms: int, rung_before_ms: int) -> int:
        old = [
            id
            for id, each in self._rings.items()
            if each.ring.rung_ms < (heard_before_ms if each.ring.heard_ms is not None else rung_before_ms)
        ]
        for id in old:
            del self._rings[id]
        return len(old)
