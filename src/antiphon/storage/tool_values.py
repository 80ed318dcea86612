"""The interface of the store of what tools keep for themselves, for each user."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError


class ToolStorageFull(StorageError):
    """The tool has as many keys for this user as it may have. Nothing was stored."""

    code = "tool_storage_full"


class ToolValue(Struct, frozen=True):
    tool: str
    user: str
    key: str
    value: bytes
    """JSON."""
    updated_ms: int


class ToolValueStore(Protocol):
    async def get(self, tool: str, user: str, key: str) -> bytes | None: ...

    async def put(self, value: ToolValue, *, max_keys: int) -> None:
        """Stores a value, or replaces the one with the same tool, user and key.

        Raises `ToolStorageFull` if it is a new key and the tool already has `max_keys` for this user.
        """
        ...

    async def delete(self, tool: str, user: str, key: str) -> bool:
        """Deletes a value, and returns whether it existed. Of concurrent calls, one gets True."""
        ...

    async def keys(self, tool: str, user: str, prefix: str = "") -> Sequence[str]:
        """Returns the keys that begin with the prefix, in the order of their code points."""
        ...

    async def list(self, user: str) -> Sequence[ToolValue]:
        """Returns the values of all tools for a user, by tool and key."""
        ...

    async def clear(self, user: str) -> int:
        """Deletes the values of all tools for a user, and returns how many there were."""
        ...
