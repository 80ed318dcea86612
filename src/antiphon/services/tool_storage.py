"""What tools keep for themselves, in the database: one small store for each tool and user."""

from collections.abc import Sequence
from typing import Any

import msgspec

from antiphon.clock import Clock
from antiphon.storage.tool_values import ToolStorageFull, ToolValue, ToolValueStore
from antiphon.tools.capabilities.storage import MAX_KEY_CHARS, MAX_KEYS, MAX_VALUE_BYTES
from antiphon.tools.context import Offer, SessionView, ToolView
from antiphon.tools.errors import ErrorType, ToolError


def offer_storage(store: ToolValueStore, clock: Clock) -> Offer:
    def offer(session: SessionView, tool: ToolView) -> ToolStorage:
        return ToolStorage(store, tool.id, session.user, clock)

    return offer


class ToolStorage:
    def __init__(self, store: ToolValueStore, tool: str, user: str, clock: Clock) -> None:
        self._store = store
        self._tool = tool
        self._user = user
        self._clock = clock

    async def get(self, key: str, default: Any = None) -> Any:
        stored = await self._store.get(self._tool, self._user, _checked(key))
        return default if stored is None else msgspec.json.decode(stored)

    async def set(self, key: str, value: Any) -> None:
        encoded = _encode(_checked(key), value)
        try:
            await self._store.put(
                ToolValue(self._tool, self._user, key, encoded, self._clock.now_ms()), max_keys=MAX_KEYS
            )
        except ToolStorageFull:
            raise ToolError(
                ErrorType.PERMANENT,
                "There's no more room to remember that.",
                suggestion=f"{self._tool} stores {MAX_KEYS} values for this user already, which is the most.",
            ) from None

    async def delete(self, key: str) -> bool:
        return await self._store.delete(self._tool, self._user, _checked(key))

    async def list(self, prefix: str = "") -> Sequence[str]:
        return await self._store.keys(self._tool, self._user, prefix)


def _checked(key: str) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY_CHARS:
        raise ValueError(f"a key of context.storage is a text of 1 to {MAX_KEY_CHARS} characters")
    return key


def _encode(key: str, value: Any) -> bytes:
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the value for {key!r} is not JSON: {error}") from None
    if len(encoded) > MAX_VALUE_BYTES:
        raise ValueError(f"the value for {key!r} has {len(encoded):,} bytes; at most {MAX_VALUE_BYTES:,} are stored")
    return encoded
