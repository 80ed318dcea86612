"""Fuzzy matching of sentences that no template matches exactly, because of a slip or a recognition error.

Each template that shares a word with the sentence is expanded to its nearest reading and aligned with the sentence
word by word. Differences have a cost. Words that carry the meaning ("time", "joke") must be there, if misspelt; of
the small ones ("is", "the") some may be missing, changed or too many. A slot takes one word or more.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from math import log10
from typing import Final

from rapidfuzz import fuzz, process

from antiphon.sentences.matching import SLOT, Match, Template, match_template
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import nearest, plainest, required, words

MAX_WORDS: Final = 30
MIN_SCORE: Final = 0.6
MAX_COST: Final = 1.0
MIN_SCORE_TO_ASK: Final = 0.7
"""From which score on the user is asked whether an action is meant."""
CLEARLY_CLOSER: Final = 0.1
"""By how much the best tool must beat the next one."""

_MIN_SIMILARITY: Final = 0.74
"""The similarity of "yoke" and "joke" is 0.75."""
_COMMON_WORD: Final = 3
"""A word that is in so many templates is meant as it is: "timer" is no misspelt "times"."""
_NO_PLURALS: Final = frozenset({("time", "times")})
"""Words of different meaning: "what's the best time to visit Tokyo" is no multiplication."""
_MIN_FUZZY_CHARS: Final = 3
"""Shorter words must match exactly."""

_IMPOSSIBLE: Final = 99.0
_SMALL_WEIGHT: Final = 0.2
_SMALL_BEFORE_SLOT: Final = 0.5
"""Without the "in" of "in {place}", a slot takes words that were never meant for it."""
_SMALL_EXTRA: Final = 0.1
_SMALL_CHANGED: Final = 0.15
_EXTRA: Final = 0.6
_EXTRA_AT_END: Final = _IMPOSSIBLE
"""What follows a command is part of the request: "tell me a joke about cats" is not "tell me a joke"."""
_MISSING: Final = _IMPOSSIBLE
_MISSPELT: Final = 1.5
_SLOT_WORD: Final = 0.01

_RELATED_SIMILARITY: Final = 0.85
"""For a suggestion, "timer" is close enough to "time", but "hard" is not close enough to "hear"."""
_RELATED_MISSING: Final = 0.25
_RELATED_SMALL: Final = 0.05
_RELATED_ALTERNATIVE: Final = 0.5
"""In a suggested sentence: the cost of a word that was not said, the value of a small word that was, and of a word that
the sentence could have instead of its own."""

NEGATIONS: Final = frozenset({"not", "no", "never", "nothing", "without", "except", "unless", "neither", "nor"})
_WORD_LIST: Final = """
    a an the this that these those some any another one more s
    i me my mine you your yours we us our it its he she him her his they them their
    is are was were be been being am do does did has have had can could will would shall should may might must
    of in on at to for from by with about as into over up out off
    and or so if then than but
    what which who whom when where how why
    tell give show get let know want need like say see find make
    please just now right really actually again maybe there here only still also too very going gonna got
"""
_VERB_LIST: Final = "is are was were am be been do does did has have had can could will would"
_VERBS: Final = frozenset(_VERB_LIST.split())
_DANGLING_LIST: Final = "a an the my your our of in on at to for from by with and or"
_DANGLING: Final = frozenset(_DANGLING_LIST.split())
"""No slot takes what begins with a verb or ends with one of these: "the meeting was boring", "milk on the list"."""
_OTHER_REQUEST: Final = frozenset({"who", "whom", "why", "should", "did", "if"})
"""With one of these too many, it is another request: "did you lock the door" is not "lock the door"."""
_UNLIKE_OTHERS: Final = _OTHER_REQUEST | {"and", "or", "but", "than", "to", "when", "where"}
"""No other small word stands for one of these."""
SMALL_WORDS: Final = frozenset(_WORD_LIST.split())
"""Words that carry little meaning."""
_UNINDEXED: Final = SMALL_WORDS | NEGATIONS


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    match: Match
    text: str
    """What the user probably meant to say."""
    score: float
    """1 means no difference."""


class FuzzyMatcher:
    """An index of the templates by their words."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self._by_word: defaultdict[str, list[Template]] = defaultdict(list)
        self._required: dict[int, list[frozenset[str]]] = {}
        self._plain: dict[int, tuple[str, frozenset[str]]] = {}
        for template in templates:
            self._required[id(template)] = required(template.compiled.tree, _UNINDEXED)
            plain = plainest(template.compiled.tree)
            self._plain[id(template)] = plain, frozenset(plain.lower().split())
            for word in {word.lower() for word in words(template.compiled.tree)} - _UNINDEXED:
                self._by_word[word].append(template)
        self.vocabulary = sorted(self._by_word)
        """The words of the templates that carry meaning."""

    def closest(self, phrases: Iterable[Phrase], tools: Container[str]) -> list[FuzzyMatch]:
        """Returns the best match of each tool, best first."""
        best: dict[str, FuzzyMatch] = {}
        for phrase in {phrase.text: phrase for phrase in phrases}.values():
            for near in self._matches(phrase, tools):
                known = best.get(near.match.template.tool_id)
                if known is None or near.score > known.score:
                    best[near.match.template.tool_id] = near
        return sorted(best.values(), key=lambda near: (-near.score, near.match.template.tool_id))

    def related(self, phrase: Phrase, tools: Container[str]) -> list[tuple[Template, str]]:
        """For each tool that has a word in common with the phrase, the plain reading of its nearest template, nearest
        first.

        A reading may ask for something else altogether. Its slots appear as `{name}`.
        """
        said = [word for word, _, _ in phrase.words()][:MAX_WORDS]
        by_word = {word: self._similar_words(word) for word in said}
        similarity: defaultdict[str, float] = defaultdict(float)
        for known, similar in (pair for found in by_word.values() for pair in found.items()):
            if similar >= _RELATED_SIMILARITY:
                similarity[known] = max(similarity[known], similar)
        wanted = {word for word in said if word in SMALL_WORDS}.union(similarity)
        best: dict[str, tuple[float, Template, str]] = {}
        alternatives: defaultdict[int, float] = defaultdict(float)
        templates = {id(t): t for word in similarity for t in self._by_word[word]}
        for word in similarity.keys() & set(said):
            for template in self._by_word[word]:
                if word not in self._plain[id(template)][1]:
                    alternatives[id(template)] += _RELATED_ALTERNATIVE * self._value(word, similarity)
        for template in templates.values():
            if template.tool_id not in tools:
                continue
            reading, tokens = self._plain[id(template)]
            score = alternatives[id(template)]
            score += sum(self._suggestion_score(similarity, wanted, token) for token in tokens)
            if template.tool_id not in best or score > best[template.tool_id][0]:
                best[template.tool_id] = (score, template, reading)
        ranked = sorted(best.values(), key=lambda found: (-found[0], found[1].tool_id))
        return [(template, reading) for _, template, reading in ranked]

    def _suggestion_score(self, similarity: Mapping[str, float], wanted: Container[str], token: str) -> float:
        """Scores a word of a reading: a rare word that was said counts the most."""
        if SLOT.search(token):
            return 0.0
        if token in SMALL_WORDS:
            return _RELATED_SMALL if token in wanted else 0.0
        if token not in wanted:
            return -_RELATED_MISSING
        return self._value(token, similarity)

    def _value(self, word: str, similarity: Mapping[str, float]) -> float:
        return similarity[word] / (1 + log10(len({t.tool_id for t in self._by_word[word]})))

    def _matches(self, phrase: Phrase, tools: Container[str]) -> Iterable[FuzzyMatch]:
        said = phrase.words()
        if not 0 < len(said) <= MAX_WORDS:
            return
        by_word = {word: self._similar_words(word) for word, _, _ in said}
        wanted = {word for word, _, _ in said if word in _UNINDEXED}.union(*by_word.values())
        found = {id(t): t for similar in by_word.values() for word in similar for t in self._by_word[word]}
        for template in found.values():
            if template.tool_id not in tools or any(map(wanted.isdisjoint, self._required[id(template)])):
                continue
            tokens = _nearest_reading(template, wanted).split()
            cost, fills = _align(tokens, [word for word, _, _ in said], by_word)
            score = 1 - cost / (sum(_weight(token) for token in tokens if not SLOT.search(token)) or 1)
            if cost > MAX_COST or score < MIN_SCORE or not _are_likely(fills, [word for word, _, _ in said]):
                continue
            taken = iter(phrase.source(said[first][1], said[last - 1][2]) for first, last in fills)
            text = " ".join(next(taken) if SLOT.search(token) else token for token in tokens)
            # The grammar decides: a slot may accept only numbers, or only the values of a list.
            match = min(match_template(template, Phrase(text)), key=lambda match: match.order, default=None)
            if match is not None:
                yield FuzzyMatch(match, text, score)

    def _similar_words(self, word: str) -> dict[str, float]:
        """Returns the template words that this one may stand for, with their similarity."""
        if word in _UNINDEXED:
            return {}
        if len(word) < _MIN_FUZZY_CHARS:
            return {word: 1.0} if word in self._by_word else {}
        is_common = len(self._by_word.get(word, ())) >= _COMMON_WORD
        found = process.extract(
            word, self.vocabulary, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY * 100, limit=None
        )
        return {
            known: similarity / 100
            for known, similarity, _ in found
            if len(known) >= _MIN_FUZZY_CHARS
            and (word, known) not in _NO_PLURALS
            and not (is_common and known.rstrip("s") != word.rstrip("s"))
        }


def _nearest_reading(template: Template, wanted: Container[str]) -> str:
    return nearest(template.compiled.tree, lambda word: _weight(word) if word.lower() in wanted else -_weight(word))


def _weight(word: str) -> float:
    return _SMALL_WEIGHT if word.lower() in SMALL_WORDS else 1.0


_SimilarWords = dict[str, dict[str, float]]
_Fills = tuple[tuple[int, int], ...]


def _align(tokens: list[str], said: list[str], by_word: _SimilarWords) -> tuple[float, _Fills]:
    """Returns the lowest cost of turning the words into the tokens, and which words each slot takes (from, up to)."""
    row: list[tuple[float, _Fills]] = [(0.0, ())]
    for word in said:
        row.append((row[-1][0] + _extra(word, at_end=False), ()))
    for number, token in enumerate(tokens, 1):
        if SLOT.search(token):
            row = [(_IMPOSSIBLE, ()), *(_fill(row, end) for end in range(1, len(row)))]
            continue
        small = token.lower() in SMALL_WORDS
        missing = _missing(small, tokens[: number - 1], tokens[number:])
        new = [(row[0][0] + missing, row[0][1])]
        for at, word in enumerate(said, 1):
            cost = _changed(token.lower(), small, word, by_word)
            extra = _extra(word, at_end=number == len(tokens))
            new.append(
                min(
                    (row[at - 1][0] + cost, row[at - 1][1]),
                    (row[at][0] + missing, row[at][1]),
                    (new[at - 1][0] + extra, new[at - 1][1]),
                )
            )
        row = new
    return row[-1]


def _missing(small: bool, before: list[str], after: list[str]) -> float:
    if not small:
        return _MISSING
    if not (after and SLOT.search(after[0])):
        return _SMALL_WEIGHT
    # Between two slots, the word is what separates them.
    return _IMPOSSIBLE if before and SLOT.search(before[-1]) else _SMALL_BEFORE_SLOT


def _fill(row: list[tuple[float, _Fills]], end: int) -> tuple[float, _Fills]:
    start = min(range(end), key=lambda first: row[first][0] + (end - first) * _SLOT_WORD)
    cost, fills = row[start]
    return cost + (end - start) * _SLOT_WORD, (*fills, (start, end))


def _are_likely(fills: _Fills, said: list[str]) -> bool:
    """Whether each slot takes words that can be a name or a time, not a half sentence or small words alone."""
    taken = [said[first:end] for first, end in fills]
    return not any(
        words[0] in _VERBS or words[-1] in _DANGLING or not NEGATIONS.isdisjoint(words) or SMALL_WORDS.issuperset(words)
        for words in taken
    )


def _extra(word: str, *, at_end: bool) -> float:
    if word in NEGATIONS:
        return _IMPOSSIBLE
    if word in SMALL_WORDS and word not in _OTHER_REQUEST:
        return _SMALL_EXTRA
    return _EXTRA_AT_END if at_end else _EXTRA


def _is_misspelt(word: str, token: str) -> bool:
    return len(word) >= _MIN_FUZZY_CHARS and fuzz.ratio(word, token) >= _MIN_SIMILARITY * 100


def _changed(token: str, small: bool, word: str, by_word: _SimilarWords) -> float:
    if token == word:
        return 0.0
    if small:
        if word in _UNLIKE_OTHERS or token in _UNLIKE_OTHERS or (word in _VERBS) != (token in _VERBS):
            return _IMPOSSIBLE
        return _SMALL_CHANGED if word in SMALL_WORDS or _is_misspelt(word, token) else _IMPOSSIBLE
    similarity = by_word[word].get(token)
    return _IMPOSSIBLE if similarity is None else (1 - similarity) * _MISSPELT
