"""The lists and notes of a session's user."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class ListContent(Struct, frozen=True):
    name: str
    """What the list is called, such as "shopping", "to do" or "notes"."""
    items: tuple[str, ...]
    """In the order in which they were added."""


class Added(Struct, frozen=True):
    list: str
    added: tuple[str, ...]
    duplicates: tuple[str, ...]
    """What was on the list already."""


class Removed(Struct, frozen=True):
    list: str
    removed: tuple[str, ...]
    missing: tuple[str, ...]
    """What was asked for but is not on the list."""


class Lists(Protocol):
    """The lists and notes of a session's user. All methods raise `ToolError` with a sentence for the user."""

    async def add(self, item: str, list: str | None = None) -> Added:
        """Adds one or several items, as people say them ("eggs and bread"), to a list, which need not exist.

        Without a list, it is the only one that the user has, or the shopping list if there is none.
        """
        ...

    async def all(self) -> Sequence[ListContent]:
        """Returns all lists that have items, and the notes, by name."""
        ...

    async def show(self, list: str) -> ListContent:
        """Returns a list. The notes, the shopping list and the to do list may be empty; another one is not found."""
        ...

    async def remove(self, item: str, list: str | None = None) -> Removed:
        """Removes one or several items. A name that is nearly right will do if it fits one item.

        Without a list, the item is looked for on all of them.
        """
        ...

    async def clear(self, list: str | None = None) -> ListContent:
        """Removes all items of a list, by default of the only one, and returns what was on it."""
        ...
