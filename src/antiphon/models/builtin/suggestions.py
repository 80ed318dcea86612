"""Suggests what to say: complete sentences of the grammar, which are understood when spoken."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from hassil import RangeSlotList, TextSlotList
from rapidfuzz import fuzz, process

from antiphon.models.builtin.fuzzy import FuzzyMatcher
from antiphon.sentences.matching import SLOT, Matcher, Template
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import plainest, shortest, tree
from antiphon.sentences.templates import Grammar

MAX_RELATED_TRIED: Final = 8
"""How many readings are tried for the few that are shown. Matching one takes up to a millisecond."""
MIN_SIMILARITY: Final = 75
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

    def sentences(self, count: int | None = None) -> dict[str, list[str]]:
        """Returns up to `count` sentences per tool that ask for it in different ways, or one of each template."""
        return {
            tool_id: list(dict.fromkeys(map(self._fill, grammar.templates)))[:count]
            for tool_id, grammar in self._grammars.items()
        }

    def phrase(self, tool_id: str, args: Mapping[str, Any]) -> str | None:
        """Returns the sentence of the grammar that asks for the tool with these arguments, if there is a template with
        slots for all of them."""
        best: tuple[int, str] | None = None
        for template in self._grammars[tool_id].templates:
            reading = plainest(template.compiled.tree)
            names = SLOT.findall(reading)
            if all(isinstance(args.get(name), str) for name in names) and (best is None or len(names) > best[0]):
                best = len(names), SLOT.sub(lambda slot: str(args[slot[1]]), reading)
        return None if best is None or best[0] < len(args) else best[1]

    def near(
        self,
        phrase: Phrase,
        tools: frozenset[str],
        count: int,
        *,
        said: Phrase,
        nearest: Sequence[str] = (),
        max_words: int | None = None,
    ) -> dict[str, str]:
        """Returns at most `count` sentences similar to the phrase, best first, by tool.

        `said` is the phrase with its polite words, which may belong to a sentence: "tell me a joke" has some. `nearest`
        are the tools in the order of their meaning, if that is known. Otherwise words in common decide.
        """
        known = [(id, example) for id in nearest[:MAX_RELATED_TRIED] if (example := self._examples.get(id)) is not None]
        # Some sentences are too long to listen to.
        chosen = dict([each for each in known if max_words is None or len(each[1].split()) <= max_words][:count])
        if chosen:
            return chosen
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
            said.text, examples, scorer=fuzz.ratio, score_cutoff=MIN_SIMILARITY, limit=count - len(chosen)
        )
        return chosen | {tool_id: example for example, _, tool_id in alike}

    def _example(self, grammar: Grammar) -> str | None:
        """Returns a tool's first sentence that can be said as it is."""
        readings = ((template, plainest(template.compiled.tree)) for template in grammar.templates)
        return next((sentence for pair in readings if (sentence := self._whole(*pair)) is not None), None)

    def _fill(self, template: Template) -> str:
        words = _words_for_slots(template, self._grammars[template.tool_id].slot_examples)
        return SLOT.sub(lambda slot: words.get(slot[1], ""), plainest(template.compiled.tree))

    def _whole(self, template: Template, reading: str) -> str | None:
        """Fills the slots of a reading; None if a slot has no example, or another tool matches the sentence."""
        words = _words_for_slots(template, self._grammars[template.tool_id].slot_examples)
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
