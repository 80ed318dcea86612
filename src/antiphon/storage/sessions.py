"""The seams to what a session leaves for the next process that takes it up: its record, its lease and its messages."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError

MESSAGES_KEPT: Final = 1_000
CHARACTERS_KEPT: Final = 1 << 20
"""A session's newest messages are kept up to the first of these limits. A backend may keep more, never fewer."""

Told = Sequence[tuple[int, str]]
"""Messages to a client, each with its number; a number is higher than the one before."""


class Fence(NamedTuple):
    """What a process shows when it writes for a session: the lease that it was given."""

    session_id: str
    lease_token: int


class Fenced(StorageError):
    """The session has ended, or another process has its lease; nothing was written."""

    code = "fenced"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The session {session_id} has ended or goes on in another process, so this one may not write for it. "
            "Connect again to go on."
        )


class SessionRecord(Struct, frozen=True):
    """One client attached to one conversation, as another process finds it."""

    id: str
    user: str
    conversation_id: str
    mode: str
    tools_version: str
    turn: int
    state: bytes
    """JSON in the words of whoever runs the session; a store does not look into it."""
    handle_hash: str
    """The handle itself is never stored."""
    handle_expires_ms: int
    lease_owner: str
    lease_token: int
    lease_until_ms: int
    updated_ms: int
    previous_handle_hash: str | None = None
    """The handle before this one, as long as the client may not have received this one."""


class SessionStore(Protocol):
    async def begin(self, record: SessionRecord) -> None:
        """Stores a new session with its first handle and lease. Fenced writes for it are possible from now on."""
        ...

    async def save(self, record: SessionRecord) -> None:
        """Stores what the owner of the lease may change; the record's lease token must still be the session's.

        The user, the handles and the lease stay as they are: only `rotate` and `settle_handle` change the handles,
        though a save may put off their end, and only `take_lease` and `renew` change the lease. Raises `Fenced`.
        """
        ...

    async def rotate(
        self, old_handle_hash: str, new_handle_hash: str, user: str, now_ms: int, expires_ms: int
    ) -> SessionRecord | None:
        """The session of a live handle of this user. The new handle takes its place.

        The old one stays valid beside the new one until the new one is used, or until `settle_handle`: the client may
        lose its connection before it has received the new one. None if the handle is unknown, used up, expired or
        another's.
        """
        ...

    async def settle_handle(self, session_id: str, lease_token: int) -> None:
        """The client has its newest handle, so the one before it is used up. Does nothing without the lease."""
        ...

    async def take_lease(self, session_id: str, owner: str, now_ms: int, until_ms: int) -> SessionRecord:
        """The session as its earlier owner left it, with a new, higher lease token: that owner is fenced from now on.

        A record that was read before may be out of date, since the earlier owner could still write. Raises `Fenced` if
        there is no such session.
        """
        ...

    async def renew(self, session_id: str, lease_token: int, until_ms: int) -> bool:
        """Whether the lease was still this one, and is kept until then."""
        ...

    async def end(self, session_id: str, lease_token: int | None = None) -> bool:
        """Forgets the session, its handle and its messages, and says whether it was there.

        With a token, only if the lease is still that one: whoever was fenced must not end what goes on elsewhere.
        """
        ...

    async def end_all(self, user: str) -> int:
        """Ends every session of a user, whoever holds it, and says how many there were."""
        ...

    async def sweep(self, now_ms: int) -> int:
        """Ends the sessions that nobody holds and nobody can come back to, and says how many there were."""
        ...


class MessageStore(Protocol):
    """What clients were told, to be told again after a reconnect."""

    async def append_many(self, session_id: str, messages: Told, lease_token: int) -> None:
        """All of them or none; each number is higher than the one before. Raises `Fenced`."""
        ...

    async def after(self, session_id: str, last_n: int) -> Told:
        """The messages with higher numbers, in their order, as far as they are kept."""
        ...
