"""The seams to what is known of people: who may come in, and who must wait outside."""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct


class Block(Struct, frozen=True):
    user: str
    until_ms: int
    reason: str


class BlockStore(Protocol):
    async def block(self, user: str, until_ms: int, reason: str) -> None:
        """Blocks a user until then, unless a block that lasts as long is there already."""
        ...

    async def blocked_until(self, user: str, now_ms: int) -> int | None:
        """The end of a block that has not ended yet."""
        ...

    async def take_expired(self, user: str, now_ms: int) -> Block | None:
        """Removes the user's block if it has expired, and returns it. Of concurrent calls, exactly one gets it."""
        ...

    async def unblock(self, user: str) -> bool:
        """Whether there was a block to lift, be it over or not."""
        ...

    async def list(self, now_ms: int) -> Sequence[Block]:
        """Those that have not ended yet, the first to end first."""
        ...


class TokenRecord(Struct, frozen=True):
    """A token that lets a person or a program in as a user. The token itself is never stored, only its hash."""

    id: str
    user: str
    name: str
    """What it is for, in the words of whoever made it."""
    token_hash: str
    created_ms: int
    expires_ms: int | None


class TokenStore(Protocol):
    async def add(self, token: TokenRecord) -> None: ...

    async def find(self, token_hash: str, now_ms: int) -> TokenRecord | None:
        """None if it is unknown, revoked or expired."""
        ...

    async def valid(self, ids: Collection[str], now_ms: int) -> Collection[str]:
        """Those of the ids whose tokens are neither revoked nor expired."""
        ...

    async def list(self) -> Sequence[TokenRecord]:
        """All that were not revoked, the expired ones too, oldest first."""
        ...

    async def revoke(self, id: str) -> bool:
        """Whether it was there."""
        ...
