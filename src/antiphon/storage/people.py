"""The interfaces of the stores of access tokens and of blocked users."""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct


class Block(Struct, frozen=True):
    user: str
    until_ms: int
    reason: str


class BlockStore(Protocol):
    async def block(self, user: str, until_ms: int, reason: str) -> None:
        """Blocks a user until a time, unless an existing block lasts as long."""
        ...

    async def blocked_until(self, user: str, now_ms: int) -> int | None:
        """Returns the end of the user's block, or None if there is none in force."""
        ...

    async def take_expired(self, user: str, now_ms: int) -> Block | None:
        """Removes the user's block if it has expired, and returns it. Of concurrent calls, exactly one gets it."""
        ...

    async def unblock(self, user: str) -> bool:
        """Removes the user's block, in force or not, and returns whether there was one."""
        ...

    async def list(self, now_ms: int) -> Sequence[Block]:
        """Returns the blocks in force, the first to end first."""
        ...


class TokenRecord(Struct, frozen=True):
    """An access token of a user. Only the hash of the token is stored."""

    id: str
    user: str
    name: str
    """What it is for, in the words of its creator."""
    token_hash: str
    created_ms: int
    expires_ms: int | None
    is_admin: bool = False
    """Whether it opens the operator's page, on which everything can be read."""


class TokenStore(Protocol):
    async def add(self, token: TokenRecord) -> None: ...

    async def find(self, token_hash: str, now_ms: int) -> TokenRecord | None:
        """Returns None if the token is unknown, revoked or expired."""
        ...

    async def valid(self, ids: Collection[str], now_ms: int) -> Collection[str]:
        """Returns those ids whose tokens are neither revoked nor expired."""
        ...

    async def list(self) -> Sequence[TokenRecord]:
        """Returns all tokens that were not revoked, including expired ones, oldest first."""
        ...

    async def revoke(self, id: str) -> bool:
        """Deletes the token, and returns whether it existed."""
        ...
