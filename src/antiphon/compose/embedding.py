"""The embedding model of a process, if its files and packages are there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from antiphon.config import Settings
from antiphon.embedding.base import Embedder, EmbeddingError
from antiphon.errors import AntiphonError
from antiphon.models.tool_ranking import LexicalRanker, Ranker, SemanticRanker
from antiphon.telemetry.log import get_logger

log = get_logger(__name__)


async def open_embedder(settings: Settings) -> Embedder:
    """Loads the embedding model. Raises `AntiphonError` if a file or a package is missing. The caller closes it."""
    try:
        from antiphon.embedding.minilm import MiniLmEmbedder
    except ModuleNotFoundError as error:
        message = f"the package {error.name} is not installed. Run: pip install 'antiphon[local]'"
        raise EmbeddingError(message) from error
    return await asyncio.to_thread(MiniLmEmbedder, settings.models_dir)


class SharedEmbedder:
    """The embedding model that the knowledge base and the offline assistant share, loaded when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loading = asyncio.Lock()
        self._embedder: Embedder | None = None

    async def load(self) -> Embedder:
        """Returns the model. Raises `AntiphonError` if a file or a package is missing."""
        async with self._loading:
            if self._embedder is None:
                self._embedder = await open_embedder(self._settings)
            return self._embedder

    async def find(self) -> Embedder | None:
        """Returns the model; None if it is missing, which the log tells."""
        try:
            return await self.load()
        except AntiphonError as error:
            log.warning("requests_matched_by_words", reason=str(error))
            return None

    async def aclose(self) -> None:
        if self._embedder is not None:
            await self._embedder.aclose()


@asynccontextmanager
async def open_ranker(settings: Settings) -> AsyncIterator[Ranker]:
    """Opens what ranks tools: by meaning, or else by words, which the log tells."""
    try:
        embedder = await open_embedder(settings)
    except AntiphonError as error:
        log.warning("tools_ranked_by_words", reason=str(error))
        yield LexicalRanker()
        return
    try:
        yield SemanticRanker(embedder)
    finally:
        await embedder.aclose()
