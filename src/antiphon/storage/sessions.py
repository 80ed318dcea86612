"""The interfaces of the stores of sessions: the record, the lease, and the messages for a process that resumes one."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError

MESSAGES_KEPT: Final = 1_000
CHARACTERS_KEPT: Final = 1 << 20
"""A session's newest messages are kept, up to whichever limit is reached first. A backend may keep more, not fewer."""

SentMessages = Sequence[tuple[int, str]]
"""Messages to a client, each with its number, in increasing order."""


class Fence(NamedTuple):
    """The proof that a process holds the lease of a session, which it shows with every write."""

    session_id: str
    lease_token: int


class Fenced(StorageError):
    """The session has ended, or another process holds its lease. Nothing was written."""

    code = "fenced"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The session {session_id} has ended or goes on in another process, so this one may not write for it. "
            "Connect again to go on."
        )


class SessionRecord(Struct, frozen=True):
    """One client in one conversation, as another process finds it."""

    id: str
    user: str
    conversation_id: str
    mode: str
    tools_version: str
    turn: int
    state: bytes
    """JSON from the process that runs the session. A store does not interpret it."""
    handle_hash: str
    """Only the hash of the handle is stored."""
    handle_expires_ms: int
    lease_owner: str
    lease_token: int
    lease_until_ms: int
    updated_ms: int
    previous_handle_hash: str | None = None
    """The previous handle, while the client may not have received the newest."""


class SessionStore(Protocol):
    async def begin(self, record: SessionRecord) -> None:
        """Stores a new session with its first handle and lease, so that fenced writes for it are possible.

        It may be repeated by the process that is not sure whether it succeeded.
        """
        ...

    async def save(self, record: SessionRecord) -> None:
        """Stores what the holder of the lease may change; the record's lease token must still be the session's.

        The user, the handles and the lease do not change: `rotate` and `settle_handle` change the handles, although a
        save may extend their validity, and `take_lease` and `renew` change the lease. Raises `Fenced`.
        """
        ...

    async def rotate(
        self, old_handle_hash: str, new_handle_hash: str, user: str, now_ms: int, expires_ms: int
    ) -> SessionRecord | None:
        """Finds the session of a valid handle of this user, and replaces the handle by a new one.

        The old handle stays valid until the new one is used, or until `settle_handle`, since the client may lose its
        connection before it receives the new one. Returns None if the handle is unknown, used, expired or another
        user's.
        """
        ...

    async def settle_handle(self, session_id: str, lease_token: int) -> None:
        """Invalidates the previous handle, since the client has the newest. Does nothing without the lease."""
        ...

    async def take_lease(self, session_id: str, owner: str, now_ms: int, until_ms: int) -> SessionRecord:
        """Takes the lease with a new, higher token, which fences the previous holder, and returns the session.

        A record that was read before may be out of date, since the previous holder could still write. Raises `Fenced`
        if there is no such session.
        """
        ...

    async def claim(self, record: SessionRecord) -> SessionRecord | None:
        """Begins the session, or takes the lease of the one with this id, unless another process holds it.

        Returns the session with its new lease, or None if the lease is held at the record's `updated_ms`. Of concurrent
        claims of several processes, one succeeds. A process may claim a session that it holds itself: it knows whether
        the session is in use.
        """
        ...

    async def renew(self, session_id: str, lease_token: int, until_ms: int) -> bool:
        """Sets the end of the lease, and returns whether it was still this one. 0 releases it."""
        ...

    async def holders(self, now_ms: int, user: str | None = None) -> Sequence[str]:
        """Returns the processes that hold leases now: of sessions of this user, or of any."""
        ...

    async def held_in(self, conversation_id: str, now_ms: int) -> Sequence[SessionRecord]:
        """Returns the sessions in this conversation whose leases are held now, by whichever process."""
        ...

    async def end(self, session_id: str, lease_token: int | None = None) -> bool:
        """Deletes the session, its handle and its messages, and returns whether it existed.

        With a token, only if the lease is still that one: a fenced process must not end a session that runs elsewhere.
        """
        ...

    async def end_all(self, user: str) -> int:
        """Ends every session of a user, whichever process holds it, and returns how many."""
        ...

    async def sweep(self, now_ms: int) -> int:
        """Ends the sessions that no process holds and no client can resume, and returns how many."""
        ...


class MessageStore(Protocol):
    """Messages that were sent to clients, to be sent again after a reconnect."""

    async def append_many(self, session_id: str, messages: SentMessages, lease_token: int) -> None:
        """Stores all of the messages or none. A message replaces one that has its number. Raises `Fenced`."""
        ...

    async def after(self, session_id: str, last_n: int) -> SentMessages:
        """Returns the kept messages with higher numbers, in order."""
        ...
