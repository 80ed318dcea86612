"""The embedding model of the knowledge base, which is loaded when it is first needed, if it is there at all."""

import asyncio
from collections.abc import Awaitable, Callable

from antiphon.embedding.base import Embedder
from antiphon.errors import AntiphonError
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)


class LazyEmbedder:
    """Loads the model once. Close it."""

    def __init__(self, load: Callable[[], Awaitable[Embedder]] | None) -> None:
        """`load` raises `AntiphonError` if the model cannot be loaded; None means that it is not wanted."""
        self._load = load
        self._embedder: Embedder | None = None
        self._loading = asyncio.Lock()
        self.problem: str | None = None if load is not None else "knowledge.embeddings is off"
        """Why there is no model, once that is known."""

    async def get(self) -> Embedder | None:
        """Returns the model, or None if there is none."""
        if self._embedder is not None or self.problem is not None:
            return self._embedder
        async with self._loading:
            if self._embedder is None and self.problem is None:
                assert self._load is not None
                try:
                    self._embedder = await self._load()
                except AntiphonError as error:
                    self.problem = str(error)
                    log.warning("knowledge_searched_by_words", reason=self.problem)
        return self._embedder

    async def aclose(self) -> None:
        if self._embedder is not None:
            await self._embedder.aclose()
