"""The interface of the store that the operator reads: sessions, conversations, users and the audit of everybody.

It only reads. Every list is bounded by its `limit`, and continues after the last entry that was seen.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Place, StoredTurn, VoiceCall
from antiphon.storage.sessions import SessionRecord


class UserActivity(Struct, frozen=True):
    """A user who has conversations."""

    user: str
    conversations: int
    updated_ms: int
    """When the newest turn was added."""


class AuditFilter(Struct, frozen=True):
    """Which lines of the audit are wanted. None means all."""

    user: str | None = None
    session: str | None = None
    conversation: str | None = None
    tool: str | None = None
    outcome: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    """The first moment that no longer counts."""

    def matches(self, line: AuditLine) -> bool:
        fields = ("user", "session", "conversation", "tool", "outcome")
        return (
            all(getattr(self, name) in (None, getattr(line, name)) for name in fields)
            and (self.since_ms is None or line.ts_ms >= self.since_ms)
            and (self.until_ms is None or line.ts_ms < self.until_ms)
        )


class OverviewStore(Protocol):
    async def sessions(
        self, limit: int, *, user: str | None = None, after: Place | None = None
    ) -> Sequence[SessionRecord]:
        """Returns the most recently updated first, whichever process holds them."""
        ...

    async def conversations(
        self, limit: int, *, user: str | None = None, after: Place | None = None
    ) -> Sequence[Conversation]:
        """Returns the most recently updated first, of one user or of all."""
        ...

    async def conversation(self, id: str) -> Conversation | None: ...

    async def turns(self, conversation_id: str, limit: int, before: int | None = None) -> Sequence[StoredTurn]:
        """Returns the newest turns, oldest first; `before` continues with those before a number."""
        ...

    async def voice_calls(self, conversation: Conversation, limit: int) -> Sequence[VoiceCall]:
        """Returns the most recently started first."""
        ...

    async def users(self, limit: int) -> Sequence[UserActivity]:
        """Returns the users with conversations, the most recently active first."""
        ...

    async def audit(
        self, wanted: AuditFilter, limit: int, before: int | None = None
    ) -> Sequence[tuple[int, AuditLine]]:
        """Returns lines newest first, each with its number; `before` continues from such a number."""
        ...

    async def record_counts(self) -> Mapping[str, int]:
        """Returns how many records of the knowledge base there are in each namespace that has any."""
        ...
