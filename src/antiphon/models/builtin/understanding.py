"""Finds what the user asks for, by the sentences of all tools. Each text is understood on its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from hassil import RangeSlotList

from antiphon.models.builtin import replies
from antiphon.models.builtin.fuzzy import CLEARLY_CLOSER, FuzzyMatcher
from antiphon.models.builtin.recall import Recall, find_recall
from antiphon.models.builtin.suggestions import Suggestions
from antiphon.models.completeness import Completeness, can_continue, is_unfinished
from antiphon.sentences.matching import Match, Matcher, Template, match_template
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import sample
from antiphon.sentences.templates import parse
from antiphon.tools.affirmation import verdict
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

MAX_POLITE_PHRASES: Final = 4
"""How many are removed at either end."""

_BEFORE: Final = re.compile(
    r"\s*(?:please|kindly|hey|hi|hello|good (?:morning|afternoon|evening)|antiphon|computer|"
    r"ok|okay|alright|all right|right|so|well|oh|um+|uh+|er+m?|hm+|now|then|and|actually|listen|just|"
    r"(?:can|could|will|would) you(?: please)?|tell me|let me know|do you (?:happen to )?know|"
    r"i(?:'d|’d| would) like (?:you to|to know)|i (?:want|need) (?:you to|to know))(?:[\s,.!:]+|\Z)",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"[\s,.!]{0,3}\b(?:please|thanks|thank you|(?:can|could|will|would) you)[\s,.!?]{0,3}\Z", re.IGNORECASE
)


def strip_polite_words(said: str) -> list[Phrase]:
    """Returns the text with more and more of its polite words removed, starting with none.

    The grammar decides which of them belong to the request: "tell me" does in "tell me a joke".
    """
    said = said.strip()
    starts, ends = [0], [len(said)]
    for _ in range(MAX_POLITE_PHRASES):
        if (match := _BEFORE.match(said, starts[-1])) and match.end() < len(said):
            starts.append(match.end())
        if (match := _AFTER.search(said, 0, ends[-1])) and match.start() > 0:
            ends.append(match.start())
    texts = (said[start:end] for start in starts for end in ends if start < end)
    return [Phrase(text) for text in dict.fromkeys(texts)] or [Phrase(said)]


MAX_CHARS: Final = 600
"""hassil tries every distribution of words over slots: 30 ms for a sum of this length."""
MAX_CLAUSES: Final = 3
UNDERSTOOD_REMEMBERED: Final = 256
SENTENCES_PER_TOOL: Final = 6
SAMPLES_TO_WARM: Final = 8

_BETWEEN_CLAUSES: Final = re.compile(r"[\s,]+(?:and then|and also|and|then)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call that the words ask for, and how to phrase its result if the sentence defines that."""

    tool_id: str
    args: Mapping[str, Any]
    say: str | None


@dataclass(frozen=True, slots=True)
class Run:
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """A guess at a call with side effects: it runs only after a yes."""

    question: str
    call: PlannedCall


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Remember:
    """A question about the conversation itself."""

    recall: Recall


Understood = Run | Ask | Say | Remember


class Understanding:
    """The compiled sentences of all tools. Compiling takes some hundred milliseconds for a large toolkit."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        grammars = [parse(tool_id, tool.sentences) for tool_id, tool in tools.items() if tool.sentences is not None]
        templates = [template for grammar in grammars for template in grammar.templates]
        for template in templates:
            _warm(template)
        self._tools = tools
        self._matcher = Matcher(templates)
        self._fuzzy = FuzzyMatcher(templates)
        self._allowed = {
            mode: frozenset(tool_id for tool_id, tool in tools.items() if mode in tool.spec.allowed_modes)
            for mode in Mode
        }
        self._suggestions = Suggestions(grammars, self._matcher, self._fuzzy)
        self._examples = {mode: self._suggestions.examples(self._allowed[mode]) for mode in Mode}
        self.sentences: Mapping[str, Sequence[str]] = self._suggestions.sentences(SENTENCES_PER_TOOL)
        """Sentences that ask for each tool, for those who compare them with what was said."""
        # A turn is parsed twice: before its calls, and after them to phrase the results.
        self.understand = lru_cache(UNDERSTOOD_REMEMBERED)(self._understand)
        # A spoken turn is also checked for completeness before that.
        self._match = lru_cache(UNDERSTOOD_REMEMBERED)(self._find_match)

    def completeness(self, text: str, mode: Mode) -> Completeness:
        if _is_long(text):
            return Completeness.UNKNOWN
        tools = self._allowed[mode]
        is_open = is_unfinished(text) or any(
            self._matcher.could_go_on(phrase, tools) for phrase in strip_polite_words(text)
        )
        if self._match(text, tools) is not None:
            return Completeness.EXTENDABLE if is_open or can_continue(text) else Completeness.COMPLETE
        if _is_short_remark(text):
            return Completeness.EXTENDABLE
        return Completeness.PARTIAL if is_open else Completeness.UNKNOWN

    def find_request(self, text: str, mode: Mode) -> Run | None:
        """Returns the calls if the whole text is a sentence of a tool, or several of them; None otherwise."""
        if _is_long(text):
            return None
        allowed = self._allowed[mode]
        whole = self._match(text, allowed)
        # A wildcard takes whatever follows, but "what time is it in Tokyo and tell me a joke" is two requests. Calls
        # with side effects are not split: a reminder may well contain an "and".
        if whole is None or (whole.free_chars and not self._writes(whole)):
            clauses = self._several_calls(text, allowed)
            if clauses:
                return Run(clauses)
        return None if whole is None else Run((_planned_call(whole),))

    def _understand(self, text: str, mode: Mode) -> Understood:
        if _is_long(text):
            return Say(replies.TOO_LONG)
        if (request := self.find_request(text, mode)) is not None:
            return request
        words = words_of(text)
        if (recall := find_recall(words)) is not None:
            return Remember(recall)
        if replies.asks_for_help(words):
            return Say(replies.offers(text, self._examples[mode]))
        if (answer := replies.small_talk(words)) is not None:
            return Say(answer)
        elsewhere = self._match(text, frozenset(self._tools))
        if elsewhere is not None:
            return Say(replies.only_in(self._tools[elsewhere.template.tool_id].spec.allowed_modes))
        return self._guess(text, mode)

    def _find_match(self, text: str, tools: frozenset[str]) -> Match | None:
        found = (self._matcher.match(phrase, tools) for phrase in strip_polite_words(text))
        return min((match for match in found if match is not None), key=lambda match: match.order, default=None)

    def _writes(self, match: Match) -> bool:
        return self._tools[match.template.tool_id].spec.writes

    def _several_calls(self, text: str, tools: frozenset[str]) -> tuple[PlannedCall, ...]:
        """Returns the calls of a sentence that consists of several read-only requests."""
        parts = _BETWEEN_CLAUSES.split(text)
        if not 1 < len(parts) <= MAX_CLAUSES:
            return ()
        found = [self._match(part, tools) for part in parts]
        whole = [match for match in found if match is not None and not self._writes(match)]
        return tuple(map(_planned_call, whole)) if len(whole) == len(parts) else ()

    def _guess(self, text: str, mode: Mode) -> Understood:
        phrases = strip_polite_words(text)
        closest = self._fuzzy.closest([phrases[0], phrases[-1]], self._allowed[mode])
        if closest and (len(closest) == 1 or closest[0].score - closest[1].score >= CLEARLY_CLOSER):
            call = _planned_call(closest[0].match)
            return Ask(replies.did_you_mean(closest[0].text), call) if self._writes(closest[0].match) else Run((call,))
        count = replies.SUGGESTIONS[mode]
        near = self._suggestions.near(phrases[-1], self._allowed[mode], count)
        others = self._suggestions.examples(self._allowed[mode] - near.keys())
        return Say(replies.unknown([*near.values(), *replies.some(others, count - len(near), text)], mode))


def _is_short_remark(text: str) -> bool:
    """Whether it is a greeting, thanks, a yes or a question about the conversation, which may be complete, or the
    beginning of a request."""
    words = words_of(text)
    is_known = replies.small_talk(words) is not None or replies.asks_for_help(words) or find_recall(words) is not None
    return is_known or verdict(text) is not None


def words_of(text: str) -> str:
    """Returns the words in lower case, without punctuation or contractions."""
    return " ".join(word for word, _, _ in Phrase(text).words())


def _is_long(text: str) -> bool:
    # Spelled out, "1+2" is three times as long.
    return len(text) > MAX_CHARS or len(Phrase(text).text) > MAX_CHARS


def _warm(template: Template) -> None:
    # hassil spells out all numbers of a range at its first use: 40 ms for a thousand.
    lists = template.compiled.intent.data[0].slot_lists
    if any(isinstance(lists[slot.list_name], RangeSlotList) for slot in template.compiled.slots):
        for text in sample(template.compiled.tree, SAMPLES_TO_WARM, lambda slot: "something"):
            match_template(template, Phrase(text))


def _planned_call(match: Match) -> PlannedCall:
    return PlannedCall(match.template.tool_id, match.args, match.template.say)
