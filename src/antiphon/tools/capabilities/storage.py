"""A small key-value store for one tool and one user."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

MAX_KEYS: Final = 1_000
MAX_KEY_CHARS: Final = 200
MAX_VALUE_BYTES: Final = 65_536


class Storage(Protocol):
    """A small key-value store for one tool and one user. Values are JSON, and survive restarts.

    A tool sees neither the values of other tools nor those that it has stored for other users.
    """

    async def get(self, key: str, default: Any = None) -> Any:
        """Returns the value, or the default if there is none."""
        ...

    async def set(self, key: str, value: Any) -> None:
        """Stores a value, or replaces the one that is there.

        Raises `ValueError` for a key that is empty or too long, and for a value that is not JSON or too large, and
        `ToolError` PERMANENT if there are `MAX_KEYS` keys already.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Deletes a value, and returns whether there was one."""
        ...

    async def list(self, prefix: str = "") -> Sequence[str]:
        """Returns the keys that begin with the prefix, sorted."""
        ...
