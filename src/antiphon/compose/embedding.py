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
