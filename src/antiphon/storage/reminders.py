"""The interface of the store of reminders, timers and alarms, and of the times at which they rang.

A reminder that is due becomes a ring in one transaction, whichever process comes first. A ring is delivered to a
session in one transaction with the message to its client, under the session's fence. So there is no moment between a
claim and a delivery in which a process could die: what is not stored is done by the next process.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from antiphon.storage.sessions import Fence, SentMessages


class ReminderRecord(Struct, frozen=True):
    id: str
    user: str
    kind: str
    """`reminder`, `timer` or `alarm`."""
    message: str
    """What the user wants to be told, in the user's words; empty for a timer or an alarm without a label."""
    due_ms: int
    """The next time it is due."""
    zone: str
    """The time zone in which its times are told and repeated."""
    repeat: str | None
    """How it repeats, as JSON. A store does not interpret it."""
    created_ms: int


class Ring(Struct, frozen=True):
    """One time at which a reminder was due."""

    id: str
    reminder_id: str
    user: str
    kind: str
    message: str
    due_ms: int
    zone: str
    created_ms: int
    """When the reminder was made, from which the length of a timer follows."""
    rung_ms: int
    """When a process noticed that it was due. That is later than `due_ms` if none was running."""
    heard_ms: int | None = None
    """When it was certain that a client has received it."""

    @classmethod
    def of(cls, record: ReminderRecord, now_ms: int) -> "Ring":
        return cls(
            id=f"{record.id}-{record.due_ms}",
            reminder_id=record.id,
            user=record.user,
            kind=record.kind,
            message=record.message,
            due_ms=record.due_ms,
            zone=record.zone,
            created_ms=record.created_ms,
            rung_ms=now_ms,
        )


class Delivery(Struct, frozen=True):
    """A ring in the messages of a session."""

    ring_id: str
    session_id: str
    at_ms: int
    announcement: str | None
    """What the session is to say about it; None if it was in text."""


class OpenRing(Struct, frozen=True):
    """A ring about which somebody may still have to be told."""

    ring: Ring
    deliveries: tuple[Delivery, ...] = ()


class ReminderStore(Protocol):
    async def add(self, record: ReminderRecord, limit: int) -> bool:
        """Stores a reminder, unless its user has that many already; then it returns False."""
        ...

    async def list(self, user: str) -> Sequence[ReminderRecord]:
        """Returns the reminders of a user that are still to ring, the next one first."""
        ...

    async def cancel(self, user: str, ids: Collection[str]) -> Sequence[ReminderRecord]:
        """Deletes reminders of a user, and returns those that existed. Of concurrent calls, one gets each."""
        ...

    async def next_due(self) -> int | None:
        """Returns the earliest time at which a reminder of any user is due."""
        ...

    async def due(self, now_ms: int, limit: int) -> Sequence[ReminderRecord]:
        """Returns reminders of all users that are due, the longest due first."""
        ...

    async def ring(self, record: ReminderRecord, next_due_ms: int | None, now_ms: int) -> Ring | None:
        """Turns a due reminder into a ring, and moves it to its next time, or deletes it if there is none.

        Of concurrent calls for one time, in any number of processes, exactly one gets the ring, the others None.
        Earlier rings of the same reminder that were delivered to nobody are replaced by it.
        """
        ...

    async def open_rings(self, users: Collection[str], since_ms: int) -> Sequence[OpenRing]:
        """Returns the rings of these users that are not heard yet or younger than `since_ms`, in the order of their
        times."""
        ...

    async def deliver(self, deliveries: Sequence[Delivery], fence: Fence, sent: SentMessages) -> bool:
        """Stores messages of a session together with the deliveries of the rings that they tell, all or nothing.

        Returns False if one of the rings was already delivered to the session, or is gone. Raises `Fenced`.
        """
        ...

    async def hear(self, ring_ids: Collection[str], now_ms: int) -> None:
        """Notes that clients have received these rings."""
        ...

    async def last_ring(self, user: str, since_ms: int) -> Ring | None:
        """Returns the newest ring of a user that rang since then."""
        ...

    async def clear(self, user: str) -> int:
        """Deletes the reminders and rings of a user, and returns how many reminders there were."""
        ...

    async def sweep(self, heard_before_ms: int, rung_before_ms: int) -> int:
        """Deletes heard rings that are older than the first time and all that are older than the second. Returns how
        many."""
        ...
