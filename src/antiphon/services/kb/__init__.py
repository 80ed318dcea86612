"""The knowledge base: records that are found by words and by meaning."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from antiphon.clock import SystemClock
from antiphon.config import Settings
from antiphon.embedding.base import Embedder
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.services.kb.service import Knowledge
from antiphon.storage.knowledge import KnowledgeStore

__all__ = ["Knowledge", "open_knowledge"]


@asynccontextmanager
async def open_knowledge(
    settings: Settings, store: KnowledgeStore, load_embedder: Callable[[], Awaitable[Embedder]]
) -> AsyncIterator[Knowledge]:
    """Opens the knowledge base. The embedding model is loaded when there are vectors to compare, or records to add."""
    wanted = load_embedder if settings.knowledge.embeddings else None
    knowledge = Knowledge(store, LazyEmbedder(wanted), SystemClock(), studio_readers=settings.knowledge.studio_readers)
    try:
        yield knowledge
    finally:
        await knowledge.aclose()
