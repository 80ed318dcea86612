"""The interface of the store of what happens in a conversation beside its words: latencies, changes of the model."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct


class SessionEvent(Struct, frozen=True):
    """Something that happened in a session. It has no words of the conversation."""

    conversation_id: str
    session_id: str
    at_ms: int
    kind: str
    """The type of the message that told the client."""
    data: dict[str, Any]


class EventStore(Protocol):
    """Events belong to their conversation, and are deleted or cleared with it."""

    async def append(self, events: Sequence[SessionEvent]) -> None:
        """Stores those events whose conversation is stored."""
        ...

    async def list(
        self, conversation_id: str, limit: int, *, since_ms: int = 0, until_ms: int | None = None
    ) -> Sequence[SessionEvent]:
        """Returns the newest events of a conversation in this time, oldest first. `until_ms` no longer counts."""
        ...
