"""The interface of the store through which one process gives commands to sessions that run in another."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class SessionCommand(Struct, frozen=True):
    """Something that a session is asked to do. The process that runs the session does it, and stores the result."""

    id: str
    session_id: str
    """The session; or, for something that concerns all sessions of a process, the name of that process in leases."""
    kind: str
    body: bytes
    """JSON. A store does not interpret it."""
    expires_ms: int
    """A command that was not taken by then is not carried out any more."""


class CommandStore(Protocol):
    async def put(self, command: SessionCommand) -> None: ...

    async def take(self, session_ids: Collection[str], now_ms: int) -> Sequence[SessionCommand]:
        """Returns the commands for these sessions that nobody has taken, the oldest first, unless they have expired.

        Of concurrent calls, in any number of processes, one gets each.
        """
        ...

    async def finish(self, id: str, result: bytes) -> None:
        """Stores the result of a command. Does nothing if nobody waits for it any more."""
        ...

    async def results(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Returns the results of those of the commands that have one."""
        ...

    async def remove(self, id: str) -> bool:
        """Deletes a command, and returns whether nobody had taken it."""
        ...

    async def sweep(self, before_ms: int) -> int:
        """Deletes the commands that expired before that time, and returns how many."""
        ...
