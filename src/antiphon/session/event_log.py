"""What the operator's timeline of a conversation has beside its words: latencies, and changes of the model.

Clients are told of these by messages, which are kept only as long as a session can be resumed.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from antiphon.clock import Clock
from antiphon.continuity.events import NoticeCode
from antiphon.protocol import codec
from antiphon.protocol.server_messages import Energy, Notice, ServerMessage, TurnMetrics
from antiphon.session.stored_session import StoredSession
from antiphon.storage.batches import Batches
from antiphon.storage.events import EventStore, SessionEvent

FLUSH_AFTER_S: Final = 1.0
MAX_WAITING: Final = 10_000
"""How many events wait while the store is down. Beyond this the oldest are dropped."""

_UPSTREAM: Final = frozenset(NoticeCode)


class EventLog:
    """Stores events in batches, off the path of the conversation."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._clock = clock
        self._events = Batches(store.append, "events", after_s=FLUSH_AFTER_S, max_waiting=MAX_WAITING)
        self.flush = self._events.flush
        self.aclose = self._events.aclose

    def observer(self, session: StoredSession) -> Callable[[ServerMessage], None]:
        """Makes the function that a session's outbox calls with its messages."""

        def observe(message: ServerMessage) -> None:
            if is_event(message):
                self._add(session, message)

        return observe

    def _add(self, session: StoredSession, message: ServerMessage) -> None:
        data = {name: value for name, value in msgspec.to_builtins(message).items() if value is not None}
        kind = data.pop("type")
        data.pop("n", None)
        record = session.record
        self._events.add(SessionEvent(record.conversation_id, record.id, self._clock.now_ms(), kind, data))


def is_event(message: ServerMessage) -> bool:
    """Whether the message is about how the conversation works, and has no words of it."""
    if isinstance(message, Notice):
        return message.code in _UPSTREAM
    return isinstance(message, TurnMetrics | Energy)


METRICS: Final = codec.tag_of(TurnMetrics)
ENERGY: Final = codec.tag_of(Energy)
NOTICE: Final = codec.tag_of(Notice)
"""The kinds of events."""
