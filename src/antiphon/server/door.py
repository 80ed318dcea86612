"""Who may come in, and as whom."""

from dataclasses import dataclass
from typing import Final

from antiphon.clock import Clock
from antiphon.security.tokens import hash_token, is_token
from antiphon.storage.people import BlockStore, TokenStore

LOCAL_USER: Final = "local"
"""Everybody, where no token is asked for."""


@dataclass(frozen=True, slots=True)
class Caller:
    user: str
    authenticated: bool


class Door:
    def __init__(self, tokens: TokenStore, blocks: BlockStore, clock: Clock, *, required: bool) -> None:
        self.required = required
        """Whether a token must be shown."""
        self._tokens = tokens
        self._blocks = blocks
        self._clock = clock

    async def identify(self, token: str | None) -> Caller | None:
        """None if a token is required and this is none. A wrong one is never taken for none at all."""
        if token is None:
            return None if self.required else Caller(LOCAL_USER, authenticated=False)
        found = await self._tokens.find(hash_token(token), self._clock.now_ms()) if is_token(token) else None
        return None if found is None else Caller(found.user, authenticated=True)

    async def blocked_until(self, user: str) -> int | None:
        return await self._blocks.blocked_until(user, self._clock.now_ms())
