"""What the operator's timeline of a conversation has beside its words: latencies, and changes of the model.

Clients are told of these by messages, which are kept only as long as a session can be resumed.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from antiphon.clock import Clock
from antiphon.continuity.events import NoticeCode
from antiphon.protocol import codec
from antiphon.protocol.server_messages import Energy, Notice, ServerMessage, TurnMetrics
from antiphon.session.stored_session import StoredSession
from antiphon.storage.base import StorageError
from antiphon.storage.events import EventStore, SessionEvent
from antiphon.telemetry.log import get_logger

FLUSH_AFTER_S: Final = 1.0
MAX_WAITING: Final = 10_000
"""How many events wait while the store is down. Beyond this the oldest are dropped."""

_UPSTREAM: Final = frozenset(NoticeCode)

log = get_logger(__name__)


class EventLog:
    """Stores events in batches, off the path of the conversation."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: list[SessionEvent] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def observer(self, session: StoredSession) -> Callable[[ServerMessage], None]:
        """Makes the function that a session's outbox calls with its messages."""

        def observe(message: ServerMessage) -> None:
            if is_event(message):
                self._add(session, message)

        return observe

    async def flush(self) -> None:
        """Stores what waits. If the store is down, it is tried again with the next event."""
        async with self._lock:
            events, self._waiting = self._waiting, []
            if not events:
                return
            try:
                await self._store.append(events)
            except StorageError as error:
                self._waiting[:0] = events
                del self._waiting[:-MAX_WAITING]
                log.warning("events_not_stored", error=str(error), waiting=len(self._waiting))

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing is not None:
            await self._flushing
        await self.flush()

    def _add(self, session: StoredSession, message: ServerMessage) -> None:
        data = {name: value for name, value in msgspec.to_builtins(message).items() if value is not None}
        kind = data.pop("type")
        data.pop("n", None)
        self._waiting.append(
            SessionEvent(session.record.conversation_id, session.record.id, self._clock.now_ms(), kind, data)
        )
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER_S, self._begin_flush)

    def _begin_flush(self) -> None:
        self._timer = None
        self._flushing = asyncio.get_running_loop().create_task(self.flush())


def is_event(message: ServerMessage) -> bool:
    """Whether the message is about how the conversation works, and has no words of it."""
    if isinstance(message, Notice):
        return message.code in _UPSTREAM
    return isinstance(message, TurnMetrics | Energy)


METRICS: Final = codec.tag_of(TurnMetrics)
ENERGY: Final = codec.tag_of(Energy)
NOTICE: Final = codec.tag_of(Notice)
"""The kinds of events."""
