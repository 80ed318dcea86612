"""Rings what is due, and tells the sessions of its user: each session once, whichever process it is in.

1. A reminder that is due becomes a ring. This is one transaction, so of all processes one does it.
2. A ring is stored among the messages of a session together with the fact that the session has it, in one transaction
   under the session's fence. Then it is sent. A client that has not received it gets it when it resumes, by its number.
3. A ring counts as heard when the client has stayed connected for `HEARD_MS` after the message. If it has not, the next
   client of the user is told as well: the first one may be gone for good.

A ring goes to every session that was connected when it rang, and if there was none, to the next one that connects.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from antiphon.clock import Clock
from antiphon.services.reminders import wording
from antiphon.services.reminders.service import ReminderService, next_due_ms
from antiphon.storage.base import StorageError
from antiphon.storage.changes import Topic, wait_for_change
from antiphon.storage.reminders import Delivery, OpenRing, ReminderStore, Ring
from antiphon.telemetry.log import get_logger
from antiphon.tools.capabilities.reminders import DueReminder

POLL_S: Final = 1.0
"""How often other processes' changes are looked for."""
RETRY_S: Final = 5.0
"""How long to wait after the database could not be reached."""
BATCH: Final = 100
HEARD_MS: Final = 45_000
"""A socket that is dead without a word is noticed within 40 s."""
UNHEARD_MS: Final = 60_000
"""After this time without a sign that a ring was heard, another client is told."""
ATTENDED_MS: Final = 2_000
"""A client that connected this soon after a ring was there: the page was just reloaded."""
CLOSING_S: Final = 2.0
MAX_ANNOUNCED: Final = 10_000

log = get_logger(__name__)


class Listener(Protocol):
    """A session with a client that can be told of a ring."""

    @property
    def id(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def connected_ms(self) -> int:
        """Since when its client is connected."""
        ...

    @property
    def speaks(self) -> bool:
        """Whether it says what rings, and does not only show it."""
        ...

    @property
    def has_more_to_say(self) -> bool:
        """Whether an announcement is still waiting for its turn."""
        ...

    async def deliver(self, due: Sequence[DueReminder], deliveries: Sequence[Delivery]) -> bool:
        """Stores the messages with the deliveries, and sends them. False if it has them already, or is over."""
        ...

    def announce(self, text: str) -> None:
        """Says it as soon as no turn is under way."""
        ...

    def has_said(self, text: str, since_ms: int) -> bool:
        """Whether this was said since then, wholly or in part."""
        ...


class Scheduler:
    def __init__(self, service: ReminderService, listeners: Callable[[], Sequence[Listener]]) -> None:
        self._store: ReminderStore = service.store
        self._clock: Clock = service.clock
        self._changes = service.changes
        self._changed = service.changes.subscribe(Topic.REMINDERS)
        self._listeners = listeners
        self._telling: dict[str, asyncio.Task[None]] = {}
        """Deliveries under way, by session. A session that is slow does not delay the others."""
        self._announced: dict[tuple[str, str], None] = {}
        """The newest rings, by session, whose announcement this process has taken care of."""
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Runs until it is cancelled."""
        try:
            while True:
                await wait_for_change(self._changed, await self._step())
        finally:
            await self._stop_telling()

    def start(self) -> None:
        self._running = asyncio.create_task(self.run())

    async def aclose(self) -> None:
        """Finishes what is being delivered. What is due from now on is left to the next process."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _step(self) -> float:
        try:
            await self.ring_due()
            await self.tell_sessions()
            next_ms = await self._store.next_due()
        except StorageError as error:
            log.warning("reminders_not_checked", error=str(error))
            return RETRY_S
        except Exception:
            # One fault must not silence all other reminders.
            log.exception("reminders_not_checked")
            return RETRY_S
        if next_ms is None:
            return POLL_S
        return min(POLL_S, max(0.0, (next_ms - self._clock.now_ms()) / 1000))

    async def ring_due(self) -> None:
        """Turns every reminder that is due into a ring."""
        now_ms = self._clock.now_ms()
        while due := await self._store.due(now_ms, BATCH):
            for record in due:
                try:
                    next_ms = next_due_ms(record, now_ms)
                except ValueError:
                    # A rule that cannot be read: it rings this once, and does not hold up the others.
                    log.exception("repeat_not_readable", reminder=record.id)
                    next_ms = None
                ring = await self._store.ring(record, next_ms, now_ms)
                if ring is not None:
                    self._changes.announce(Topic.REMINDERS)
                    log.info("reminder_rang", reminder=record.id, kind=record.kind, late_ms=now_ms - record.due_ms)

    async def tell_sessions(self) -> None:
        """Tells the sessions of this process what has rung and they do not know yet."""
        listeners = self._listeners()
        if not listeners:
            return
        now_ms = self._clock.now_ms()
        rings = await self._store.open_rings({each.user for each in listeners}, now_ms - UNHEARD_MS)
        heard: list[str] = []
        for listener in listeners:
            own = [each for each in rings if each.ring.user == listener.user]
            new = [each.ring for each in own if _is_new_to(listener, each, now_ms)]
            heard += [each.ring.id for each in own if _is_heard_by(listener, each, now_ms)]
            if listener.id in self._telling:
                continue
            self._announce_again(listener, own)
            if new:
                self._telling[listener.id] = asyncio.create_task(self._tell(listener, new))
        if heard:
            await self._store.hear(heard, now_ms)

    async def settle(self) -> None:
        """Returns when everything that is being delivered has been."""
        if self._telling:
            await asyncio.wait(self._telling.values())

    async def _tell(self, listener: Listener, rings: Sequence[Ring]) -> None:
        now_ms = self._clock.now_ms()
        announcement = wording.announce(rings, now_ms) if listener.speaks else None
        deliveries = [Delivery(ring.id, listener.id, now_ms, announcement) for ring in rings]
        for ring in rings:
            self._take_care_of(ring, listener)
        try:
            is_told = await listener.deliver([wording.tell(ring, now_ms) for ring in rings], deliveries)
            if is_told and announcement is not None:
                listener.announce(announcement)
        except StorageError as error:
            # The session goes on elsewhere, or the database is down. The ring is still open.
            log.warning("reminder_not_delivered", session=listener.id, error=str(error))
        except Exception:
            log.exception("reminder_not_delivered", session=listener.id)
        finally:
            self._telling.pop(listener.id, None)

    def _announce_again(self, listener: Listener, rings: Sequence[OpenRing]) -> None:
        """Says what another process has stored with this session and did not live to say."""
        unsaid: dict[str, int] = {}
        for each in rings:
            delivery = _delivery_to(listener, each)
            if delivery is None or (each.ring.id, listener.id) in self._announced:
                continue
            self._take_care_of(each.ring, listener)
            if delivery.announcement is not None and each.ring.heard_ms is None:
                unsaid[delivery.announcement] = delivery.at_ms
        for text, since_ms in unsaid.items():
            if listener.speaks and not listener.has_said(text, since_ms):
                listener.announce(text)

    def _take_care_of(self, ring: Ring, listener: Listener) -> None:
        self._announced[ring.id, listener.id] = None
        if len(self._announced) > MAX_ANNOUNCED:
            del self._announced[next(iter(self._announced))]

    async def _stop_telling(self) -> None:
        tasks = list(self._telling.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSING_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def _delivery_to(listener: Listener, each: OpenRing) -> Delivery | None:
    return next((delivery for delivery in each.deliveries if delivery.session_id == listener.id), None)


def _is_new_to(listener: Listener, each: OpenRing, now_ms: int) -> bool:
    ring, deliveries = each.ring, each.deliveries
    if _delivery_to(listener, each) is not None:
        return False
    if not deliveries:
        return ring.heard_ms is None
    if ring.rung_ms > now_ms - UNHEARD_MS and listener.connected_ms <= ring.rung_ms + ATTENDED_MS:
        return True
    return ring.heard_ms is None and all(delivery.at_ms <= now_ms - UNHEARD_MS for delivery in deliveries)


def _is_heard_by(listener: Listener, each: OpenRing, now_ms: int) -> bool:
    delivery = _delivery_to(listener, each)
    if delivery is None or each.ring.heard_ms is not None or listener.has_more_to_say:
        return False
    return now_ms - max(delivery.at_ms, listener.connected_ms) >= HEARD_MS
