"""The interfaces of the stores that the tool gate uses. One contract suite runs over every backend."""

from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from antiphon.errors import AntiphonError

CALLS_KEPT_PER_SESSION: Final = 100
"""A backend may keep more, but not fewer: a replay after a reconnect must find its call."""


STORE_UNAVAILABLE: Final = "The server cannot reach its database right now. Try again in a moment."
"""The message to every client while the store is unavailable. The log has the reason."""


class StorageError(AntiphonError):
    code = "storage"


class StoreUnavailable(StorageError):
    """The database is locked, full, read-only, damaged or gone. Nothing was changed, and a later attempt may succeed.

    Only if the connection to a server is lost in the moment of a commit, it is not known whether that was done.

    The text is for the operator: it names the database and the reason. Clients get `STORE_UNAVAILABLE`.
    """

    code = "unavailable"


class CallRecord(Struct, frozen=True, gc=False):
    """One run of a tool's handler. It is stored just before the handler starts, and completed with the result."""

    id: str
    session_id: str
    provider_key: str | None
    hash_key: str | None
    fingerprint: str
    """A hash of the tool and its arguments, so that a provider that reuses an id does not get another call's result."""
    tool: str
    turn: int
    started_ms: int
    lease_until_ms: int
    """The process that runs the handler renews this. After it, the outcome of a run without a result is unknown."""
    result: bytes | None = None


class CallStore(Protocol):
    async def find(self, session_id: str, provider_key: str | None, hash_key: str | None) -> CallRecord | None:
        """Finds the newest record of the session with either key."""
        ...

    async def start(self, record: CallRecord) -> CallRecord | None:
        """Stores a record unless one of its keys is taken. Returns None if it was stored, else the conflicting record.

        Of any number of concurrent calls with one key, in any number of processes, exactly one gets None.
        """
        ...

    async def restart(self, old: CallRecord, new: CallRecord) -> bool:
        """Replaces an unfinished `old` by `new`. Of concurrent calls with one `old`, exactly one gets True."""
        ...

    async def renew(self, records: Sequence[CallRecord], lease_until_ms: int) -> None:
        """Extends the leases of those records that have no result yet."""
        ...

    async def unfinished(self, session_id: str) -> Sequence[CallRecord]:
        """Returns the session's records without a result, oldest first."""
        ...

    async def finish(self, record: CallRecord) -> None:
        """Stores the record with its result, whether or not it was started before."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes the records of runs that started earlier, and returns how many."""
        ...

    async def clear(self, session_ids: Collection[str]) -> int:
        """Deletes all records of these sessions, and returns how many there were."""
        ...


class Confirmation(Struct, frozen=True):
    """A call that waits for the user's approval. Only the hash of the token is stored."""

    token_hash: str
    session_id: str
    user: str
    tool: str
    tool_digest: str
    """The digest of the tool when the user was asked; a changed tool needs a new question."""
    args: bytes
    """Canonical JSON of the original arguments, from which the same tool makes the same call again."""
    call_id: str | None
    occurrence: int
    """Its position among equal calls of one model message. Together with the id, it identifies the call."""
    mode: str
    turn: int
    preview: str
    expires_ms: int
    prepared: bytes | None = None
    """JSON of the arguments that the call runs with, if the tool has prepared them; otherwise it runs with `args`."""


class ConfirmationStore(Protocol):
    async def put(self, confirmation: Confirmation) -> None: ...

    async def take(self, token_hash: str, session_id: str, user: str) -> Confirmation | None:
        """Removes and returns the confirmation; None if it is unknown, used, or another user's.

        Of concurrent calls with one token, exactly one gets it. An expired one is returned too: the caller checks that.
        """
        ...

    async def pending(self, session_id: str, user: str, now_ms: int) -> Sequence[Confirmation]:
        """Returns the confirmations that have not expired, oldest first."""
        ...

    async def rehash(self, old_hash: str, new_hash: str, session_id: str, user: str) -> bool:
        """Replaces the token of a waiting confirmation; False if the old one is unknown, used, or another user's.

        The old token is invalid afterwards. The confirmation keeps its position among those that wait.
        """
        ...

    async def sweep(self, now_ms: int) -> int:
        """Deletes the expired ones, and returns how many."""
        ...

    async def clear(self, user: str) -> int:
        """Deletes all confirmations of a user, and returns how many there were."""
        ...


class AuditLine(Struct, frozen=True, omit_defaults=True, gc=False):
    """One call through the tool gate, or one event that a handler logged."""

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
    """ok, the type of the error, or `event` for what a handler logged."""
    duration_ms: float = 0.0
    clamped: dict[str, Any] | None = None
    defaults: tuple[str, ...] = ()
    confirmation: str | None = None
    """One of: requested, approved, denied, expired."""
    cache_hit: bool = False
    event: str | None = None
    data: dict[str, Any] | None = None
    conversation: str | None = None
    """None if the call belongs to no stored conversation."""


class AuditStore(Protocol):
    async def append(self, lines: Sequence[AuditLine]) -> None:
        """Stores the lines. They are durable when this returns."""
        ...

    async def read(self, since_ms: int = 0, *, after: int = 0, limit: int = 1000) -> Sequence[tuple[int, AuditLine]]:
        """Returns lines from a time on, oldest first, each with its number; `after` continues from such a number."""
        ...

    async def delete_before(self, at_ms: int) -> int:
        """Deletes earlier lines, and returns how many. Their numbers are not reused."""
        ...
