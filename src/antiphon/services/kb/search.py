"""Hybrid search: by words (BM25) and by meaning (vectors), merged by reciprocal rank."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Final

from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.services.kb.snippets import coverage
from antiphon.services.kb.terms import SOFT_WORDS, stem, terms
from antiphon.storage.knowledge import SHARED, KnowledgeState, KnowledgeStore, Namespace, PassageHit, Readable

if TYPE_CHECKING:
    from antiphon.services.kb.vectors import VectorIndex

RANK_CONSTANT: Final = 60
"""As in the literature: how little the first ranks differ from those after them."""
CANDIDATES: Final = 30
"""How many passages each of the two searches contributes, or as many records as are wanted if that is more."""
WIDER: Final = (1_000, 100_000)
"""How many passages are looked at next, as long as too few of them are readable."""
MATCH_BUDGET: Final = 4_000
"""How many passages BM25 may score: each costs a microsecond. Words beyond it are too common to tell passages apart."""
RELATED: Final = 0.25
"""Passages that are less similar have nothing to do with the question."""
WORDS_REMEMBERED: Final = 20_000
_SOFT_SHARE: Final = 0.25
_CLOSE: Final = 0.75
"""The similarity of a passage that is about just what was asked."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record that was found, by its best passage."""

    hit: PassageHit
    score: float
    coverage: float
    similarity: float | None


class HybridSearch:
    """Searches a store, with an embedding model or without one. The vectors are kept in memory, unless the database has
    an index of them."""

    def __init__(self, store: KnowledgeStore, embedders: LazyEmbedder) -> None:
        self._store = store
        self._embedders = embedders
        self._index: VectorIndex | None = None
        self._is_indexed = False
        """Whether the database has an index of the vectors."""
        self._known: KnowledgeState | None = None
        """The state of the store that the vectors are of."""
        self._following = asyncio.Lock()
        self._frequencies: dict[str, int] = {}
        self._passages = 0

    @property
    def vectors(self) -> "VectorIndex | None":
        """The vectors in memory, if there are any."""
        return self._index

    async def search(self, query: str, readable: Readable, limit: int) -> tuple[list[Ranked], bool]:
        """Returns the best records, and whether meaning was compared."""
        await self.follow()
        weights = await self.weigh(query)
        by_words, by_meaning = await asyncio.gather(
            self._find_words(weights, readable, limit), self._find_meaning(query, readable, limit)
        )
        similarity = dict(by_meaning or ())
        known = {hit.passage: hit for hit in by_words}
        missing = [passage for passage in similarity if passage not in known]
        known |= {hit.passage: hit for hit in await self._store.passages(missing, readable)}
        stems = {stem(word): weight for word, weight in weights.items()}
        covered = {
            passage: coverage(stems, hit.record.title, hit.text, *hit.record.tags) for passage, hit in known.items()
        }
        lists = [_order_by_words(by_words, covered)]
        if by_meaning is not None:
            lists.append([known[passage] for passage in similarity if passage in known])
        ranked = _merge(lists, covered, similarity if by_meaning is not None else None)
        return ranked[:limit], by_meaning is not None

    async def weigh(self, query: str) -> dict[str, float]:
        """Returns the words of a query with their weights: the rarer a word, the more it tells."""
        wanted = terms(query)
        unknown = [word for word in wanted if word not in self._frequencies]
        if unknown:
            if len(self._frequencies) > WORDS_REMEMBERED:
                self._frequencies.clear()
            self._frequencies.update(zip(unknown, await self._store.frequencies(unknown), strict=True))
        return {word: self._weight(word) for word in wanted}

    def _weight(self, word: str) -> float:
        rarity = log(1 + (self._passages + 1) / (self._frequencies[word] + 0.5))
        return rarity * _SOFT_SHARE if word in SOFT_WORDS else rarity

    async def follow(self) -> None:
        """Brings what is in memory up to date with the store, which other processes change, too."""
        if await self._store.state() == self._known:
            return
        async with self._following:
            state = await self._store.state()
            if state == self._known:
                return
            self._frequencies.clear()
            counts = await self._store.counts()
            self._passages = counts.passages
            embedder = await self._embedders.get() if state.embedder and counts.vectors else None
            has_vectors = embedder is not None and embedder.name == state.embedder
            self._is_indexed = has_vectors and await self._store.has_vector_index()
            if not has_vectors or self._is_indexed:
                self._index = None
            else:
                await self._load(state)
            self._known = state

    async def _load(self, state: KnowledgeState) -> None:
        from antiphon.services.kb.vectors import VectorIndex

        index = self._index if self._known is not None and self._known.epoch == state.epoch else None
        places = {passage: (namespace, owner) for passage, namespace, owner in await self._store.places()}
        known = set() if index is None else set(index.passages.tolist())
        gone, new = known - places.keys(), sorted(places.keys() - known)
        rows = await self._store.vectors(new)

        def change() -> "VectorIndex | None":
            kept = index.without(gone) if index is not None and gone else index
            if not rows:
                return kept
            added = VectorIndex.of(rows, places)
            return added if kept is None else kept.joined(added)

        self._index = await asyncio.to_thread(change)

    async def _find_words(self, weights: Mapping[str, float], readable: Readable, limit: int) -> list[PassageHit]:
        words, every = self._choose_words(weights)
        hits: list[PassageHit] = []
        for most in (max(CANDIDATES, limit), *WIDER):
            hits, more = await self._match(words, most, readable, every=every)
            if not hits and every:
                # No passage has all of these common words, so the rarest decides.
                every, words = False, words[:1]
                hits, more = await self._match(words, most, readable, every=False)
            if not more or len({hit.record.id for hit in hits}) >= limit:
                break
        return hits[: max(CANDIDATES, limit)]

    async def _match(
        self, words: Sequence[str], most: int, readable: Readable, *, every: bool
    ) -> tuple[list[PassageHit], bool]:
        """Returns the readable passages, best first, and whether there may be more."""
        matched = await self._store.match(words, most, every=every)
        found = {hit.passage: hit for hit in await self._store.passages(matched, readable)}
        return [found[passage] for passage in matched if passage in found], len(matched) == most

    def _choose_words(self, weights: Mapping[str, float]) -> tuple[list[str], bool]:
        """Returns the words to match, and whether every one of them must be there.

        The rarest words are matched as long as there are few enough passages with them. If even the rarest is common,
        all of the words must be there.
        """
        rarest = sorted((word for word in weights if self._frequencies[word]), key=lambda word: self._frequencies[word])
        chosen: list[str] = []
        budget = MATCH_BUDGET
        for word in rarest:
            budget -= self._frequencies[word]
            if chosen and budget < 0:
                break
            chosen.append(word)
        if chosen and self._frequencies[chosen[0]] > MATCH_BUDGET and len(rarest) > 1:
            return rarest, True
        return chosen, False

    async def _find_meaning(self, query: str, readable: Readable, limit: int) -> list[tuple[int, float]] | None:
        index, most = self._index, max(CANDIDATES, limit)
        embedder = await self._embedders.get() if index is not None or self._is_indexed else None
        if embedder is None:
            return None
        [question] = await embedder.embed([query])
        if index is None:
            nearest = await self._store.nearest(question.tolist(), readable, most)
        else:
            among = await self._store.readable_passages(readable) if readable.is_filtered else None
            places = {(str(namespace), SHARED) for namespace in readable.namespaces}
            if Namespace.PERSONAL in readable.namespaces:
                places.add((str(Namespace.PERSONAL), readable.user))
            nearest = await asyncio.to_thread(index.search, question, most, places=places, among=among)
        return [(passage, similarity) for passage, similarity in nearest if similarity >= RELATED]


def _order_by_words(hits: Sequence[PassageHit], covered: Mapping[int, float]) -> list[PassageHit]:
    """Orders by BM25, corrected by the words that were too common to be matched."""
    places = {hit.passage: (place + 1) * (2 - covered[hit.passage]) for place, hit in enumerate(hits)}
    return sorted(hits, key=lambda hit: places[hit.passage])


def _merge(
    lists: Sequence[Sequence[PassageHit]], covered: Mapping[int, float], similarity: Mapping[int, float] | None
) -> list[Ranked]:
    """Merges by reciprocal rank. A record counts by its best passage in each list."""
    points: dict[tuple[str, str], float] = {}
    best: dict[tuple[str, str], PassageHit] = {}
    for ordered in lists:
        seen: set[tuple[str, str]] = set()
        for hit in ordered:
            key = (hit.record.owner, hit.record.id)
            if key in seen:
                continue
            seen.add(key)
            points[key] = points.get(key, 0.0) + 1 / (RANK_CONSTANT + len(seen))
            if key not in best or _fit(hit, covered, similarity) > _fit(best[key], covered, similarity):
                best[key] = hit
    ranked: list[Ranked] = []
    own = {id for owner, id in points if owner != SHARED}
    ceiling = 1.0
    for key in sorted(points, key=lambda key: (-points[key], key)):
        if key[0] == SHARED and key[1] in own:
            continue  # a user's own record hides a shared one with the same id
        hit = best[key]
        ceiling = min(ceiling, round(_fit(hit, covered, similarity), 4))
        near = None if similarity is None else similarity.get(hit.passage, 0.0)
        ranked.append(Ranked(hit, ceiling, covered[hit.passage], near))
    return ranked


def _fit(hit: PassageHit, covered: Mapping[int, float], similarity: Mapping[int, float] | None) -> float:
    if similarity is None:
        return covered[hit.passage]
    close = min(1.0, max(0.0, similarity.get(hit.passage, 0.0) / _CLOSE))
    return (covered[hit.passage] + close) / 2
