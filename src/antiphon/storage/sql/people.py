"""Blocks and access tokens."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import bindparam, delete, insert, or_, select

from antiphon.storage.people import Block, TokenRecord
from antiphon.storage.sql.connections import Connections
from antiphon.storage.sql.tables import blocks, tokens

_OF_USER: Final = blocks.c.user == bindparam("owner")
_IN_FORCE: Final = blocks.c.until_ms > bindparam("now_ms")

_UNTIL: Final = select(blocks.c.until_ms).where(_OF_USER, _IN_FORCE)
_TAKE_EXPIRED: Final = delete(blocks).where(_OF_USER, blocks.c.until_ms <= bindparam("now_ms")).returning(*blocks.c)
_UNBLOCK: Final = delete(blocks).where(_OF_USER)
_BLOCKED: Final = select(blocks).where(_IN_FORCE).order_by(blocks.c.until_ms, blocks.c.user)

_ADD: Final = insert(tokens)
_UNEXPIRED: Final = or_(tokens.c.expires_ms.is_(None), tokens.c.expires_ms > bindparam("now_ms"))
_FIND: Final = select(tokens).where(tokens.c.token_hash == bindparam("hash"), _UNEXPIRED)
_VALID: Final = select(tokens.c.id).where(tokens.c.id.in_(bindparam("ids", expanding=True)), _UNEXPIRED)
_TOKENS: Final = select(tokens).order_by(tokens.c.created_ms, tokens.c.id)
_REVOKE: Final = delete(tokens).where(tokens.c.id == bindparam("token"))


class SqlBlockStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        insertion = connections.insert(blocks)
        new = insertion.excluded
        self._block = insertion.on_conflict_do_update(
            index_elements=[blocks.c.user],
            set_={blocks.c.until_ms: new.until_ms, blocks.c.reason: new.reason},
            where=blocks.c.until_ms < new.until_ms,
        )

    async def block(self, user: str, until_ms: int, reason: str) -> None:
        await self._connections.change(self._block, {"user": user, "until_ms": until_ms, "reason": reason})

    async def blocked_until(self, user: str, now_ms: int) -> int | None:
        rows = await self._connections.fetch(_UNTIL, {"owner": user, "now_ms": now_ms})
        return rows[0].until_ms if rows else None

    async def take_expired(self, user: str, now_ms: int) -> Block | None:
        rows = await self._connections.fetch(_TAKE_EXPIRED, {"owner": user, "now_ms": now_ms})
        return Block(*rows[0]) if rows else None

    async def unblock(self, user: str) -> bool:
        return bool(await self._connections.change(_UNBLOCK, {"owner": user}))

    async def list(self, now_ms: int) -> Sequence[Block]:
        return [Block(*row) for row in await self._connections.fetch(_BLOCKED, {"now_ms": now_ms})]


class SqlTokenStore:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(self, token: TokenRecord) -> None:
        await self._connections.change(_ADD, asdict(token))

    async def find(self, token_hash: str, now_ms: int) -> TokenRecord | None:
        rows = await self._connections.fetch(_FIND, {"hash": token_hash, "now_ms": now_ms})
        return TokenRecord(*rows[0]) if rows else None

    async def valid(self, ids: Collection[str], now_ms: int) -> Collection[str]:
        rows = await self._connections.fetch(_VALID, {"ids": list(ids), "now_ms": now_ms})
        return {row.id for row in rows}

    async def list(self) -> Sequence[TokenRecord]:
        return [TokenRecord(*row) for row in await self._connections.fetch(_TOKENS, {})]

    async def revoke(self, id: str) -> bool:
        return bool(await self._connections.change(_REVOKE, {"token": id}))
