"""Searches the web, and looks up short answers."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class SearchResult(Struct, frozen=True):
    title: str
    url: str
    snippet: str
    """Plain text; it may be empty."""


class QuickAnswer(Struct, frozen=True):
    title: str
    text: str
    """A few sentences."""
    source: str
    """Who says so, such as "Wikipedia"."""
    url: str | None


class Web(Protocol):
    """Searches the web, and looks up short answers. What comes back was written by strangers."""

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        """Returns the best results first, and none if there are none. Raises `ToolError` if the search fails."""
        ...

    async def answer(self, query: str) -> QuickAnswer | None:
        """Returns None if no source has a short answer. Raises `ToolError` if none of them can be asked."""
        ...
