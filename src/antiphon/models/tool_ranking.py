"""Ranks tools by how close they are to a request: by meaning, or by words if there is no embedding model."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from antiphon.embedding.base import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_REMEMBERED: Final = 8_192
"""How many texts are remembered with their vectors of 1.5 KB: the texts of all tools, and what people asked lately."""

Texts = Mapping[str, Sequence[str]]
"""What describes each tool, by its name: a summary, and sentences that people ask for it with."""


class Ranker(Protocol):
    async def rank(self, request: str, tools: Texts) -> Sequence[str]:
        """Returns the names of all tools, the closest first."""
        ...


class SemanticRanker:
    """Ranks by the similarity of embeddings. A tool is as close as the closest of its texts."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, NDArray[np.float32]] = {}
        """The vectors of texts that were embedded before, by text, the oldest first."""

    async def rank(self, request: str, tools: Texts) -> Sequence[str]:
        import numpy as np

        texts = [text for each in tools.values() for text in each]
        vectors = await self._embed([*texts, request])
        return _order(tools, (np.stack([vectors[text] for text in texts]) @ vectors[request]).tolist())

    async def _embed(self, texts: Sequence[str]) -> "Mapping[str, NDArray[np.float32]]":
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors |= zip(new, await self._embedder.embed(new), strict=True)
        vectors = {text: self._vectors[text] for text in texts}
        while len(self._vectors) > MAX_REMEMBERED:
            del self._vectors[next(iter(self._vectors))]
        return vectors


class LexicalRanker:
    """Ranks by the words that the request and a tool's texts have in common. Rare words count more."""

    async def rank(self, request: str, tools: Texts) -> Sequence[str]:
        asked = _words(request)
        texts = [_words(text) for each in tools.values() for text in each]
        found_in = Counter(word for words in texts for word in words)
        weights = {word: math.log(1 + len(texts) / count) for word, count in found_in.items()}

        def score(words: frozenset[str]) -> float:
            # A long text has more words in common with anything.
            return sum(weights[word] for word in words & asked) / math.sqrt(len(words) or 1)

        return _order(tools, [score(words) for words in texts])


def _order(tools: Texts, scores: Sequence[float]) -> Sequence[str]:
    """Orders the tools by the best of their texts, whose scores are in the order of the texts."""
    at, best = 0, dict[str, float]()
    for name, texts in tools.items():
        best[name] = max(scores[at : at + len(texts)], default=-1.0)
        at += len(texts)
    return sorted(best, key=lambda name: -best[name])


def _words(text: str) -> frozenset[str]:
    # Without the plural, "days" and "day" are one word.
    return frozenset(word.rstrip("s") for word in re.findall(r"\w+", text.casefold().replace("_", " ")))
