"""The seams to storage, in the words of the tool gate that uses them. One contract suite runs over every backend."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from antiphon.errors import AntiphonError

CALLS_KEPT_PER_SESSION: Final = 100
"""A backend may keep more, never fewer: a replay after a reconnect must find its call."""


STORE_UNAVAILABLE: Final = "The server cannot reach its database right now. Try again in a moment."
"""What every client is told while the store is unavailable, whichever way it came. The log has the reason."""


class StorageError(AntiphonError):
    code = "storage"


class StoreUnavailable(StorageError):
    """The database is locked, full, read-only, damaged or gone: nothing was changed, and a later attempt may succeed.

    Its text is for the operator and names the database and the reason. Clients are told `STORE_UNAVAILABLE`.
    """

    code = "unavailable"


class CallRecord(Struct, frozen=True, gc=False):
    """One run of a tool's handler. It is written just before the handler starts, and completed with the outcome."""

    id: str
    session_id: str
    provider_key: str | None
    hash_key: str | None
    fingerprint: str
    """Tool and arguments, hashed: a provider that uses one id for two calls must not get the first one's result."""
    tool: str
    turn: int
    started_ms: int
    lease_until_ms: int
    """The process that runs it renews this. If none does, the outcome of a run without a result is unknown."""
    result: bytes | None = None


class CallStore(Protocol):
    async def find(self, session_id: str, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        """The newest record of the session that holds either key."""
        ...

    async def start(self, record: CallRecord) -> CallRecord | None:
        """Stores a record unless one of its keys is taken. None if stored, else the record in its way.

        Of any number of concurrent calls with one key, in any number of processes, exactly one gets None.
        """
        ...

    async def restart(self, old: CallRecord, new: CallRecord) -> bool:
        """Puts `new` in the place of an unfinished `old`. Of concurrent calls with one `old`, one gets True."""
        ...

    async def renew(self, records: Sequence[CallRecord], lease_until_ms: int) -> None:
        """Extends the leases of those of these records that have no result yet."""
        ...

    async def unfinished(self, session_id: str) -> Sequence[CallRecord]:
        """The session's records without a result, oldest first."""
        ...

    async def finish(self, record: CallRecord) -> None:
        """Stores the record with its result, whether or not it was started before."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the records of runs that started earlier, and says how many there were."""
        ...


class Confirmation(Struct, frozen=True):
    """A call that waits for a person. The token itself is never stored, only its hash."""

    token_hash: str
    session_id: str
    user: str
    tool: str
    tool_digest: str
    """The tool as it was when the person was asked; a changed tool needs a new question."""
    args: bytes
    """Canonical JSON of the arguments as they came; the same tool makes the same call of them again."""
    call_id: str | None
    occurrence: int
    """Its place among equal calls of one model message; with the id, what makes it the same call again."""
    mode: str
    turn: int
    preview: str
    expires_ms: int


class ConfirmationStore(Protocol):
    async def put(self, confirmation: Confirmation) -> None: ...

    async def take(self, token_hash: str, session_id: str, user: str) -> Confirmation | None:
        """The confirmation, which is used up by this call; None if unknown, used, or another's.

        Of concurrent calls with one token, exactly one gets it. An expired one is given too: the caller has the clock.
        """
        ...

    async def pending(self, session_id: str, user: str, now_ms: int) -> Sequence[Confirmation]:
        """Those that still wait, oldest first."""
        ...

    async def rehash(self, old_hash: str, new_hash: str, session_id: str, user: str) -> bool:
        """Gives a waiting confirmation another token; False if the old one is unknown, used, or another's.

        The old token finds nothing afterwards. The confirmation keeps its place among those that wait.
        """
        ...

    async def sweep(self, now_ms: int) -> int:
        """Forgets the expired ones, and says how many there were."""
        ...


class AuditLine(Struct, frozen=True, omit_defaults=True, gc=False):
    """One call through the gate, or one event that a handler logged."""

    ts_ms: int
    session: str
    user: str
    mode: str
    turn: int
    tool: str
    tool_version: str | None = None
    registry_version: str | None = None
    idempotency_key: str | None = None
    args_hash: str | None = None
    args: Any = None
    """Only if `audit.arguments` is on."""
    outcome: str = "ok"
    """ok, or the type of the error, or `event` for what a handler logged."""
    duration_ms: float = 0.0
    clamped: dict[str, Any] | None = None
    defaults: tuple[str, ...] = ()
    confirmation: str | None = None
    """requested, approved, denied, expired."""
    cache_hit: bool = False
    event: str | None = None
    data: dict[str, Any] | None = None


class AuditStore(Protocol):
    async def append(self, lines: Sequence[AuditLine]) -> None:
        """Durable when it returns."""
        ...

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        """Lines from a time on, oldest first, each with its sequence number; `after` goes on from one of those."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the lines of earlier times, and says how many there were. Their numbers are not used again."""
        ...
