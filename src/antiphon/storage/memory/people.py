"""Blocks and access tokens in memory."""

from collections.abc import Collection, Sequence

from antiphon.storage.base import StorageError
from antiphon.storage.people import Block, TokenRecord


class MemoryBlockStore:
    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}

    async def block(self, user: str, until_ms: int, reason: str) -> None:
        stored = self._blocks.get(user)
        if stored is None or stored.until_ms < until_ms:
            self._blocks[user] = Block(user, until_ms, reason)

    async def blocked_until(self, user: str, now_ms: int) -> int | None:
        stored = self._blocks.get(user)
        return stored.until_ms if stored is not None and stored.until_ms > now_ms else None

    async def take_expired(self, user: str, now_ms: int) -> Block | None:
        stored = self._blocks.get(user)
        return self._blocks.pop(user) if stored is not None and stored.until_ms <= now_ms else None

    async def unblock(self, user: str) -> bool:
        return self._blocks.pop(user, None) is not None

    async def list(self, now_ms: int) -> Sequence[Block]:
        in_force = [block for block in self._blocks.values() if block.until_ms > now_ms]
        return sorted(in_force, key=lambda block: (block.until_ms, block.user))


class MemoryTokenStore:
    def __init__(self) -> None:
        self._tokens: dict[str, TokenRecord] = {}
        """The tokens by their hashes."""

    async def add(self, token: TokenRecord) -> None:
        if token.token_hash in self._tokens or any(token.id == each.id for each in self._tokens.values()):
            raise StorageError(f"There is a token {token.id} already, or one with its hash.")
        self._tokens[token.token_hash] = token

    async def find(self, token_hash: str, now_ms: int) -> TokenRecord | None:
        token = self._tokens.get(token_hash)
        return token if token is not None and _is_valid(token, now_ms) else None

    async def valid(self, ids: Collection[str], now_ms: int) -> Collection[str]:
        return {token.id for token in self._tokens.values() if token.id in ids and _is_valid(token, now_ms)}

    async def list(self) -> Sequence[TokenRecord]:
        return sorted(self._tokens.values(), key=lambda token: (token.created_ms, token.id))

    async def revoke(self, id: str) -> bool:
        for token in self._tokens.values():
            if token.id == id:
                del self._tokens[token.token_hash]
                return True
        return False


def _is_valid(token: TokenRecord, now_ms: int) -> bool:
    return token.expires_ms is None or token.expires_ms > now_ms
