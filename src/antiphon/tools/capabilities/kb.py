"""The knowledge base, as the user of a session may read it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct


class Evidence(Struct, frozen=True, kw_only=True):
    """A record that was found, and what in it was found."""

    id: str
    namespace: str
    type: str
    title: str
    snippet: str
    """The passage around the words that were looked for."""
    text: str
    """The whole passage."""
    score: float
    """How well it fits, from 0 to 1. No result has a higher score than one before it."""
    coverage: float
    """How much of the question's words the passage has, from 0 to 1; rare words count more."""
    similarity: float | None
    """How close it is in meaning, up to 1; None if nothing was compared by meaning."""
    tags: tuple[str, ...]
    source_type: str
    source: str
    last_updated: str
    """ISO 8601, in UTC."""
    url: str | None
    metadata: Mapping[str, Any]


class Found(Struct, frozen=True):
    results: tuple[Evidence, ...]
    """The best first, each record once."""
    by_meaning: bool
    """Whether meaning was compared, too, and not only words."""


class Answer(Struct, frozen=True):
    """One or two sentences of a record that answer a question."""

    evidence: Evidence
    text: str


class FullRecord(Struct, frozen=True, kw_only=True):
    id: str
    namespace: str
    type: str
    title: str
    body: str
    tags: tuple[str, ...]
    source_type: str
    source: str
    last_updated: str
    url: str | None
    metadata: Mapping[str, Any]


class StoredLink(Struct, frozen=True):
    """A link in a record, and the name of what it leads to."""

    id: str
    title: str
    url: str


class KnowledgeBase(Protocol):
    """What is found is limited to what the session's user may read."""

    async def search(
        self,
        query: str,
        *,
        namespace: str | None = None,
        type: str | None = None,
        tags: Sequence[str] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        top_k: int = 5,
    ) -> Found:
        """Raises `ToolError` AUTH for a namespace that the user may not read."""
        ...

    async def answer(self, question: str, found: Found) -> Answer | None:
        """Finds the sentences that answer the question; None if what was found does not clearly answer it."""
        ...

    async def get(self, id: str) -> FullRecord | None:
        """Returns None if there is no such record, or if the user may not read it."""
        ...

    async def find_links(self, name: str, host: str) -> Sequence[StoredLink]:
        """Returns the stored links to a host, or to a host below it, of whatever has this name."""
        ...
