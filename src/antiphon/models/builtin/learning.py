"""Learns the meaning of the tools' requests, and embeds what people say. All of that runs off the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from antiphon.embedding.base import Embedder
from antiphon.models.builtin.meaning import Meaning, cache_file
from antiphon.models.builtin.understanding import Understanding
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode
from antiphon.words.lexicon import Lexicon

CHUNK: Final = 16
"""How many examples are embedded at a time, between which what people say has its turn: 60 ms."""

log = get_logger(__name__)


class Learner:
    """Turns the second tier of an `Understanding` on, if there is an embedding model."""

    def __init__(self, load: Callable[[], Awaitable[Embedder | None]], folder: Path | None = None) -> None:
        """`load` returns the embedding model of the process; None if there is none. `folder` keeps what was learned."""
        self._load = load
        self._folder = folder
        self._embedder: Embedder | None = None

    async def learn(self, understanding: Understanding) -> bool:
        """Learns the requests, or reads what was learned from them before; returns whether that was possible."""
        # It takes half a second, and the examples take many.
        lexicon = await asyncio.to_thread(Lexicon.load)
        if lexicon is not None:
            understanding.read_spelling(lexicon)
        embedder = self._embedder = await self._load()
        if embedder is None:
            return False
        examples = understanding.known_requests()
        file = None if self._folder is None else cache_file(self._folder, examples, embedder.name)
        meaning = None if file is None else await asyncio.to_thread(Meaning.load, file)
        if meaning is None:
            import numpy as np

            texts = [text for _, text in examples]
            rows = [await embedder.embed(texts[at : at + CHUNK]) for at in range(0, len(texts), CHUNK)]
            meaning = await asyncio.to_thread(Meaning.fit, examples, np.concatenate(rows))
            if file is not None:
                try:
                    await asyncio.to_thread(meaning.save, file)
                except OSError as error:
                    log.warning("meaning_not_cached", reason=str(error))
        understanding.learn(meaning, embedder.embed_now)
        return True

    async def prepare(self, understanding: Understanding, text: str, mode: Mode) -> None:
        """Embeds a text that is about to be understood."""
        said = understanding.to_embed(text, mode)
        if said is not None and self._embedder is not None:
            understanding.remember(said, (await self._embedder.embed([said]))[0])
