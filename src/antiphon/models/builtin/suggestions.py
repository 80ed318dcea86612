"""Suggests what to say: complete sentences of the grammar, which are understood when spoken."""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from hassil import RangeSlotList, TextSlotList
from rapidfuzz import fuzz, process

from antiphon.models.builtin.fuzzy import FuzzyMatcher
from antiphon.sentences.matching import SLOT, Matcher, Template
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import plainest, shortest, tree
from antiphon.sentences.templates import Grammar

MAX_RELATED_TRIED: Final = 8
"""How many readings are tried for the few that are shown. Matching one takes up to a millisecond."""
MIN_SIMILARITY: Final = 70
"""How similar two whole sentences must be, in percent: "tell me a story" and "tell me a joke" are at 83."""
_EXAMPLE_NUMBERS: Final = (12, 3, 5)
"""The values for number slots, in order."""


class Suggestions:
    def __init__(self, grammars: Iterable[Grammar], matcher: Matcher, fuzzy: FuzzyMatcher) -> None:
        self._grammars = {grammar.tool_id: grammar for grammar in grammars}
        self._matcher = matcher
        self._fuzzy = fuzzy
        self._examples = {tool_id: self._example(grammar) for tool_id, grammar in self._grammars.items()}

    def examples(self, tools: Container[str]) -> list[str]:
        """Returns one sentence per tool, for tools that have one."""
        return [example for tool_id, example in self._examples.items() if example is not None and tool_id in tools]

    def sentences(self, count: int) -> dict[str, list[str]]:
        """Returns up to `count` sentences per tool that ask for it in different ways."""
        return {
            tool_id: list(dict.fromkeys(map(self._fill, grammar.templates)))[:count]
            for tool_id, grammar in self._grammars.items()
        }

    def near(self, phrase: Phrase, tools: frozenset[str], count: int) -> dict[str, str]:
        """Returns at most `count` sentences similar to the phrase, best first, by tool."""
        chosen: dict[str, str] = {}
        for template, reading in self._fuzzy.related(phrase, tools)[:MAX_RELATED_TRIED]:
            if len(chosen) == count:
                break
            sentence = self._whole(template, reading)
            if sentence is not None:
                chosen[template.tool_id] = sentence
        examples = {
            tool_id: example
            for tool_id, example in self._examples.items()
            if tool_id in tools and tool_id not in chosen
        }
        alike = process.extract(
            phrase.text, examples, scorer=fuzz.ratio, score_cutoff=MIN_SIMILARITY, limit=count - len(chosen)
        )
        return chosen | {tool_id: example for example, _, tool_id in alike}

    def _example(self, grammar: Grammar) -> str | None:
        """Returns a tool's first simple sentence, preferably one without slots."""
        readings = [(template, plainest(template.compiled.tree)) for template in grammar.templates]
        readings.sort(key=lambda pair: SLOT.search(pair[1]) is not None)
        return next((sentence for pair in readings if (sentence := self._whole(*pair)) is not None), None)

    def _fill(self, template: Template) -> str:
        words = _words_for_slots(template, self._grammars[template.tool_id].examples)
        return SLOT.sub(lambda slot: words.get(slot[1], ""), plainest(template.compiled.tree))

    def _whole(self, template: Template, reading: str) -> str | None:
        """Fills the slots of a reading; None if a slot has no example, or another tool matches the sentence."""
        words = _words_for_slots(template, self._grammars[template.tool_id].examples)
        if any(name not in words for name in SLOT.findall(reading)):
            return None
        sentence = SLOT.sub(lambda slot: words[slot[1]], reading)
        match = self._matcher.match(Phrase(sentence), self._grammars.keys())
        return sentence if match is not None and match.template.tool_id == template.tool_id else None


def _words_for_slots(template: Template, examples: Mapping[str, str]) -> dict[str, str]:
    lists = template.compiled.intent.data[0].slot_lists
    words = dict(examples)
    numbers = iter(_EXAMPLE_NUMBERS)
    for slot in template.compiled.slots:
        if slot.name in words:
            continue
        match lists[slot.list_name]:
            case RangeSlotList(start=start, stop=stop):
                words[slot.name] = str(min(max(next(numbers, start), start), stop))
            case TextSlotList(values=[first, *_]):
                words[slot.name] = shortest(tree(first.text_in, {}))
    return words
