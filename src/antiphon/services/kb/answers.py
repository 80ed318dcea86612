"""Finds the sentence of a record that answers a question, or that nothing that was found answers it.

A passage answers if it has the words of the question: the words themselves or, with an embedding model, words that mean
nearly the same. A single important word that is missing says that the question is about something else: "the salary of
Priya" is not answered by a record about Priya.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from antiphon.embedding.base import Embedder
from antiphon.services.kb.snippets import best_sentence, coverage, sentences
from antiphon.services.kb.terms import STOP_WORDS, fold, stem, stems, words
from antiphon.tools.capabilities.kb import Answer, Evidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CHARS: Final = 320
SHORT_CHARS: Final = 60
"""A shorter sentence is followed by the next one."""
MOST_SENTENCES: Final = 12
"""How many sentences of a passage are compared by meaning: each takes 4 ms."""
RECORDS_TRIED: Final = 3
WORDS_REMEMBERED: Final = 4_000

ENOUGH: Final = 0.75
"""How much of a question's words must be there."""
PROMISING: Final = 0.3
"""How much of them must be there for a comparison by meaning."""
SAME_MEANING: Final = 0.5
"""The similarity of "holiday" and "vacation" is 0.64, that of "salary" and "finance" is 0.35."""
CLOSE_ENOUGH: Final = 0.3
"""How close in meaning the sentence or the passage must be."""

_WORDS_COUNT: Final = 0.6
"""How much the words of a sentence count beside its meaning."""

_NAME: Final = re.compile(r"(?<=[\w,] )[A-Z]\w*")
"""A word with a capital letter that does not begin a sentence."""


class Answering:
    """Remembers the meaning of words, so that the next question is answered sooner."""

    def __init__(self) -> None:
        self._meanings: dict[str, NDArray[np.float32]] = {}

    async def find(
        self, question: str, weights: Mapping[str, float], results: Sequence[Evidence], embedder: Embedder | None
    ) -> Answer | None:
        """`weights` are those of the question's words."""
        for evidence in results[:RECORDS_TRIED]:
            said = sentences(evidence.text)[:MOST_SENTENCES]
            if said and evidence.coverage >= (ENOUGH if embedder is None else PROMISING):
                place = await self._choose(question, weights, evidence, said, embedder)
                if place is not None:
                    return Answer(evidence, _quote(said, place))
        return None

    async def _choose(
        self,
        question: str,
        weights: Mapping[str, float],
        evidence: Evidence,
        said: Sequence[str],
        embedder: Embedder | None,
    ) -> int | None:
        """Returns the position of the sentence that answers; None if none does."""
        asked = _beyond_title(weights, evidence.title)
        if embedder is None:
            return best_sentence(said, asked)
        wanted, *rows = await embedder.embed([question, *said])
        near = [float(row @ wanted) for row in rows]
        fits = [near[n] + _WORDS_COUNT * coverage(asked, sentence) for n, sentence in enumerate(said)]
        place = max(range(len(said)), key=lambda n: (fits[n], -n))
        if max(near[place], evidence.similarity or 0.0) < CLOSE_ENOUGH:
            return None
        return place if await self._covers(weights, evidence, said[place], embedder) >= ENOUGH else None

    async def _covers(
        self, weights: Mapping[str, float], evidence: Evidence, sentence: str, embedder: Embedder
    ) -> float:
        """Returns the share of the question's words that are in the passage or mean the same as a word of the title or
        the sentence. A name means only itself: Berlin is not Munich."""
        texts = (evidence.title, evidence.text, *evidence.tags)
        missing = [word for word in weights if not coverage({stem(word): 1.0}, *texts)]
        if not missing or evidence.coverage >= ENOUGH:
            return evidence.coverage
        names = {fold(name) for name in _NAME.findall(f"{evidence.text} {sentence}")}
        there = {fold(word.text) for text in (evidence.title, sentence) for word in words(text)}
        others = sorted(there - names - STOP_WORDS)
        if not others:
            return evidence.coverage
        meanings = await self._read([*missing, *others], embedder)
        similar = sum(
            weights[word]
            for word in missing
            if max(float(meanings[word] @ meanings[other]) for other in others) >= SAME_MEANING
        )
        return evidence.coverage + similar / sum(weights.values())

    async def _read(self, wanted: Sequence[str], embedder: Embedder) -> "Mapping[str, NDArray[np.float32]]":
        if len(self._meanings) > WORDS_REMEMBERED:
            self._meanings.clear()
        new = [word for word in dict.fromkeys(wanted) if word not in self._meanings]
        if new:
            self._meanings.update(zip(new, await embedder.embed(new), strict=True))
        return self._meanings


def _beyond_title(weights: Mapping[str, float], title: str) -> dict[str, float]:
    """Returns the stems of what is asked about the thing that the title names; all of them if nothing else is asked."""
    named = stems(title)
    asked = {stem(word): weight for word, weight in weights.items()}
    return {term: weight for term, weight in asked.items() if term not in named} or asked


def _quote(said: Sequence[str], place: int) -> str:
    """Returns the sentence, and the next one if it is short."""
    text = said[place]
    if len(text) < SHORT_CHARS and place + 1 < len(said) and len(text) + len(said[place + 1]) < MOST_CHARS:
        text = f"{text} {said[place + 1]}"
    if len(text) > MOST_CHARS:
        text = text[: text.rfind(" ", 0, MOST_CHARS)].rstrip(",;:") + "…"
    return text
