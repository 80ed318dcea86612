"""The interface of the store of people's lists and notes."""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from antiphon.storage.base import StorageError


class ListFull(StorageError):
    """The list, or all lists of the user together, would have too many items. Nothing was stored."""

    code = "list_full"


class ListItem(Struct, frozen=True):
    """One item of a list. A list exists as long as it has items."""

    user: str
    list: str
    """The name of the list."""
    key: str
    """What makes the item equal to another one, such as its words in lower case."""
    text: str
    """The item as the user said it."""
    added_ms: int


class ListStore(Protocol):
    async def add(self, items: Sequence[ListItem], *, max_items: int, max_total: int) -> Sequence[ListItem]:
        """Stores those items of one user and one list whose keys the list does not have yet, and returns them.

        Raises `ListFull` if the list would have more than `max_items`, or all lists of the user together more than
        `max_total`. Concurrent calls do not exceed the limits either.
        """
        ...

    async def items(self, user: str, list: str | None = None) -> Sequence[ListItem]:
        """Returns the items of one list, or of all lists of the user, in the order in which they were added."""
        ...

    async def remove(self, user: str, list: str, keys: Collection[str]) -> Sequence[ListItem]:
        """Removes the items with these keys, and returns those that were there. Of concurrent calls, one gets each."""
        ...

    async def clear(self, user: str, list: str | None = None) -> int:
        """Removes all items of one list, or of all lists of the user, and returns how many there were."""
        ...
