"""Matches what people say against sentence templates: an index of words finds candidates, hassil matches them."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, product
from typing import Any, Final

from hassil import Intents, RangeSlotList, RecognizeResult, recognize_all
from hassil.intents import Intent

from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import Node, Slot, bare, bare_words, could_go_on, could_read, openers, sample

LANGUAGE: Final = "en"

SLOT: Final = re.compile(r"\{(\w+)\}")
"""A slot in the text of a reading, in `args`, and a key of the result in `say`."""

_CLAUSE_OPENERS: Final = frozenset({"to", "about", "that", "saying"})

_WORDS_REMEMBERED: Final = 8192
SAMPLES_TO_WARM: Final = 8
_OPENER_CHARS: Final = 10
"""How many characters of a template's beginning are indexed. Text that begins differently is skipped."""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A parsed template, independent of the tool it belongs to."""

    intent: Intent
    tree: Node
    slots: tuple[Slot, ...]
    required: frozenset[frozenset[str]]
    """Text can only match if it contains at least one fragment of each of these sets."""


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """One sentence template of one tool."""

    tool_id: str
    text: str
    place: str
    """Its place in sentences.yaml."""
    compiled: Compiled
    args: Mapping[str, Any] | None
    say: str | None

    def arguments(self, slots: Mapping[str, Any]) -> dict[str, Any]:
        """Builds the arguments: what `args` makes of the slots, and every other slot under its own name."""
        made: dict[str, Any] = {}
        used: set[str] = set()
        for name, value in (self.args or {}).items():
            named = slots_in(value)
            used.update(named)
            if all(slot in slots for slot in named):
                made[name] = _fill(value, slots)
        return {slot: value for slot, value in slots.items() if slot not in used} | made


def slots_in(value: Any) -> list[str]:
    """Returns the slots that a value of `args` is made from; a list may have several."""
    if isinstance(value, list):
        return [slot for each in value for slot in slots_in(each)]
    return SLOT.findall(value) if isinstance(value, str) else []


def _fill(value: Any, slots: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_fill(each, slots) for each in value]
    if not isinstance(value, str):
        return value
    # One slot alone keeps its type: "{days}" gives the number, "in {days} days" gives words.
    whole = SLOT.fullmatch(value)
    return slots[whole[1]] if whole else SLOT.sub(lambda m: str(slots[m[1]]), value)


@dataclass(frozen=True, slots=True)
class Match:
    template: Template
    args: dict[str, Any]
    free_chars: int
    """How many characters went to wildcards. The fewer, the better the match."""
    rank: int
    """Orders the readings of one template; the lowest is the most likely."""

    @property
    def order(self) -> tuple[int, int, str]:
        return self.free_chars, self.rank, self.template.tool_id


class Matcher:
    """An index of all templates. It is immutable, so all conversations can share it."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self.templates: Final = tuple(templates)
        frequency = Counter(f for t in self.templates for clause in t.compiled.required for f in clause)
        self._keyed: defaultdict[tuple[str, ...], list[Template]] = defaultdict(list)
        for template in self.templates:
            # Found by the two rarest of what it requires, so that "what" and "the" do not bring up every template.
            clauses = sorted(
                template.compiled.required, key=lambda clause: (sum(frequency[f] for f in clause), sorted(clause))
            )
            for fragments in product(*clauses[:2]) if clauses else ():
                self._keyed[tuple(sorted(set(fragments)))].append(template)
        self._longest = max(map(len, frequency), default=0)
        self._known = frozenset(frequency)
        begun: defaultdict[str, list[Template]] = defaultdict(list)
        for template in self.templates:
            for opener in openers(template.compiled.tree, _OPENER_CHARS):
                begun[opener].append(template)
        self._by_opener: Final = dict(begun)
        self._openers: Final = sorted(begun)
        self._fragments_in = lru_cache(_WORDS_REMEMBERED)(self._find_fragments)

    def _find_fragments(self, word: str) -> frozenset[str]:
        """Looks up every piece of the word, since hassil's fragments may be parts of words ("joke[s]")."""
        ends = range(1, len(word) + 1)
        pieces = (word[start:end] for end in ends for start in range(max(0, end - self._longest), end))
        return frozenset(piece for piece in pieces if piece in self._known)

    def candidates(self, text: str) -> list[Template]:
        """Returns the templates whose required words are all present. Templates without required words are left out."""
        present = frozenset[str]().union(*map(self._fragments_in, text.casefold().split()))
        keys = chain(combinations(sorted(present), 2), ((fragment,) for fragment in present))
        found = {id(t): t for key in keys for t in self._keyed.get(key, ())}
        return [t for t in found.values() if all(not clause.isdisjoint(present) for clause in t.compiled.required)]

    def match(self, phrase: Phrase, tools: Container[str]) -> Match | None:
        """Returns the reading of the whole phrase that leaves the least to wildcards."""
        return min(self.matches(phrase, tools), key=lambda match: match.order, default=None)

    def matches(self, phrase: Phrase, tools: Container[str]) -> list[Match]:
        """Returns every reading of the whole phrase."""
        found = [t for t in self.candidates(phrase.text) if t.tool_id in tools]
        return [match for template in found for match in match_template(template, phrase)]

    def could_go_on(self, phrase: Phrase, tools: Container[str]) -> bool:
        """Whether a sentence begins like the phrase and has more words of its own to come, or a slot."""
        words = bare_words(phrase.text)
        found = {id(t): t for opener in self._openers_like("".join(words)) for t in self._by_opener[opener]}
        return any(could_go_on(t.compiled.tree, words) for t in found.values() if t.tool_id in tools)

    def _openers_like(self, text: str) -> Iterator[str]:
        """Yields the openers that the text begins with, and those that begin with it."""
        for length in range(min(len(text), _OPENER_CHARS) + 1):
            if text[:length] in self._by_opener:
                yield text[:length]
        at = bisect_right(self._openers, text)
        while at < len(self._openers) and self._openers[at].startswith(text):
            yield self._openers[at]
            at += 1


def match_template(template: Template, phrase: Phrase) -> list[Match]:
    """Returns every way in which the whole phrase is a reading of the template."""
    if not could_read(template.compiled.tree, bare(phrase.text)):
        return []
    intent = template.compiled.intent
    intents = Intents(LANGUAGE, {intent.name: intent})
    return [_match(template, phrase, result) for result in recognize_all(phrase.text, intents)]


def _match(template: Template, phrase: Phrase, result: RecognizeResult) -> Match:
    slots: dict[str, Any] = {}
    free_chars = 0
    rank = 0
    for entity in result.entities_list:
        value = entity.value
        if entity.is_wildcard:
            free_chars += len(entity.text)
            value = _said(phrase, entity.text, entity.text_span)
            rank = _rank(phrase.text, entity.text_span)
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        slots[entity.name] = value
    return Match(template, template.arguments(slots), free_chars, rank)


def _said(phrase: Phrase, text: str, span: tuple[int, int] | None) -> str:
    # hassil's spans can be off, so a span that does not contain the words of the slot is not trusted.
    if span is None or _letters(phrase.text[slice(*span)]) != _letters(text):
        return text
    return phrase.source(*span)


def _letters(text: str) -> list[str]:
    return [char for char in text if char.isalnum()]


def _rank(text: str, span: tuple[int, int] | None) -> int:
    """Ranks the ways in which two slots can share the words between them: a phrase with "at" or "in" begins as late as
    possible ("look at the stars at nine"), a clause with "to" as early as possible ("at six to go to bed")."""
    if span is None:
        return 0
    before = text[: span[0]].split()
    return span[0] if before and before[-1].lower() in _CLAUSE_OPENERS else -span[0]


def warm(templates: Iterable[Template]) -> None:
    """Matches templates with numbers once, since hassil spells out all numbers of a range at its first use: 40 ms for a
    thousand. Equal ranges share the words."""
    warmed = set[tuple[int, int, int]]()
    for template in templates:
        lists = template.compiled.intent.data[0].slot_lists
        ranges = {
            (r.start, r.stop, r.step)
            for s in template.compiled.slots
            if isinstance(r := lists[s.list_name], RangeSlotList)
        }
        if not ranges <= warmed:
            warmed |= ranges
            for text in sample(template.compiled.tree, SAMPLES_TO_WARM, lambda slot: "something"):
                match_template(template, Phrase(text))
