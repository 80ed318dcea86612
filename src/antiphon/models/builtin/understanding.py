"""Finds what the user asks for, in tiers. Each text is understood on its own.

1. The whole text is a sentence of a tool, or several of them, by the grammar.
2. It means the same as requests for a tool, if there is an embedding model: `meaning` finds the tool, `filling` its
   arguments. Tools that read run on a clear guess; tools that write on a clearer one, or the user is asked.
3. It is a question, which the knowledge base may answer.
4. It is not understood. The answer says so, and suggests something near to it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from rapidfuzz import fuzz

from antiphon.models.builtin import lookup, replies, small_talk
from antiphon.models.builtin.collecting import Wanted, can_collect
from antiphon.models.builtin.filling import TIMES, VAGUE, Filler
from antiphon.models.builtin.fuzzy import CLEARLY_CLOSER, MIN_SCORE_TO_ASK, NEGATIONS, FuzzyMatcher
from antiphon.models.builtin.lookup import find_question
from antiphon.models.builtin.meaning import Example, Meaning, Ranking, normalize, with_unrelated
from antiphon.models.builtin.recall import find_recall
from antiphon.models.builtin.sentence_forms import (
    forbids,
    is_cut_off,
    is_declined,
    is_question,
    read_form,
    tells_the_past,
    wants_something,
)
from antiphon.models.builtin.suggestions import Suggestions
from antiphon.models.builtin.typos import Speller
from antiphon.models.builtin.understood import Ask, Need, PlannedCall, Remember, Run, Say, Tier, Understood, Unknown
from antiphon.models.completeness import (
    MANY_WORDS,
    Completeness,
    can_continue,
    ends_with_filler,
    is_hanging,
    is_listing,
    is_stem,
    is_unfinished,
    without_last_word,
)
from antiphon.models.expectation import Expectation
from antiphon.sentences.matching import Match, Matcher, warm
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.tools.affirmation import verdict
from antiphon.tools.policy import must_confirm
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.words.lexicon import Lexicon
from antiphon.words.readers import Reader, find, is_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Embed = Callable[[Sequence[str]], NDArray[np.float32]]

MAX_POLITE_PHRASES: Final = 4
"""How many are removed at either end."""

_BEFORE: Final = re.compile(
    r"\s*(?:please|kindly|hey|hi|hello|good (?:morning|afternoon|evening)|antiphon|computer|"
    r"alexa|siri|(?:hey|ok|okay),? google|"
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
CLEAR: Final = 0.05
"""From which lead of a guess on a tool that reads is run, and a tool that writes is asked about."""
AMONG_READERS: Final = 0.04
"""The handicap of other tools that read, if the best one reads."""
CLEARER: Final = 0.2
"""From which lead on a tool that writes is run, or asked what is missing."""
CLEAR_WITH_TIME: Final = 0.14
"""The same where a time or a length of time was found, which most sentences do not have."""
SLIP_SIMILARITY: Final = 88
"""How similar in percent what was said is to what was meant: "flip a koin" and "flip a coin" are at 91."""
SHORT: Final = 5
"""A command of so few words that lacks something is asked for it."""
CERTAIN: Final = 0.4
"""From which lead on a tool that reads is run in front of a model, which may know better."""
WORLD_ADVANTAGE: Final = 0.17
"""The advantage of the tool for questions about the world, for what has the form of one."""

_BETWEEN_CLAUSES: Final = re.compile(
    r"[\s,.;!?]+(?:and then|and also|and|then|also|plus)[\s,]+|[,.;!?]+\s+|"
    # Recognisers leave out the comma: "lock the front door turn off the lights".
    r"\s+(?=(?:turn|switch|lock|unlock|wake me|remind me|set (?:a|an|the|my)|tell me|start a|cancel (?:the|my))\b)",
    re.IGNORECASE,
)


EXPECTED: Final = {
    Reader.DIGITS: Expectation.DIGITS,
    Reader.SPELLING: Expectation.SPELLING,
    Reader.EMAIL: Expectation.EMAIL,
    Reader.PERSON: Expectation.NAME,
    Reader.ITEMS: Expectation.LIST,
}


_BEFORE_SUM: Final = re.compile(
    r"\A(?:what(?:['’]s| is| does| do you get)|how much (?:is|does)|calculate|compute|work out|do)\s+", re.IGNORECASE
)


class Understanding:
    """The compiled sentences of all tools. Compiling takes some hundred milliseconds for a large toolkit."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        grammars = [parse(tool_id, tool.sentences) for tool_id, tool in tools.items() if tool.sentences is not None]
        templates = [template for grammar in grammars for template in grammar.templates]
        warm(templates)
        self._tools = tools
        self._matcher = Matcher(templates)
        self._fuzzy = FuzzyMatcher(templates)
        self._allowed = {
            mode: frozenset(tool_id for tool_id, tool in tools.items() if mode in tool.spec.allowed_modes)
            for mode in Mode
        }
        self._fillers = {grammar.tool_id: Filler(tools[grammar.tool_id], grammar) for grammar in grammars}
        self._suggestions = Suggestions(grammars, self._matcher, self._fuzzy)
        self._examples_of = {grammar.tool_id: grammar.examples for grammar in grammars if grammar.examples}
        self.examples = {mode: self._suggestions.examples(self._allowed[mode]) for mode in Mode}
        self.arguments = {grammar.tool_id: grammar.arguments for grammar in grammars}
        self.sentences: Mapping[str, Sequence[str]] = self._suggestions.sentences(SENTENCES_PER_TOOL)
        """Sentences that ask for each tool, for those who compare them with what was said."""
        # A turn is parsed twice: before its calls, and after them to phrase the results.
        self.understand = lru_cache(UNDERSTOOD_REMEMBERED)(self._understand)
        # A spoken turn is also checked for completeness before that.
        self._match = lru_cache(UNDERSTOOD_REMEMBERED)(self._find_match)
        self._meaning: Meaning | None = None
        self._embed: Embed | None = None
        self._speller: Speller | None = None
        self._vectors: dict[str, NDArray[np.float32]] = {}
        """The vectors of recent texts, by the text that was embedded."""

    def known_requests(self) -> list[Example]:
        """Returns the sentences to learn: examples of tools and readings of their templates, and what is no request.

        Tools without examples are only matched by the grammar.
        """
        readings = self._suggestions.sentences()
        return with_unrelated({id: [*readings[id], *examples] for id, examples in self._examples_of.items()})

    def learn(self, meaning: Meaning, embed: "Embed") -> None:
        """Turns the second tier on. `embed` runs the embedding model in this thread."""
        self._meaning, self._embed = meaning, embed
        self.understand.cache_clear()

    def read_spelling(self, lexicon: Lexicon) -> None:
        """Turns the repair of misspelt words on."""
        self._speller = Speller(self._fuzzy.vocabulary, lexicon)

    def put_right(self, text: str) -> str:
        """Returns the text with its misspelt words put right."""
        return text if self._speller is None or _is_long(text) else self._speller.put_right(text)

    def to_embed(self, text: str, mode: Mode) -> str | None:
        """Returns what has to be embedded before the text can be understood without running a model; None if that is
        nothing."""
        if self._meaning is None or _is_long(text) or self.find_request(text, mode) is not None:
            return None
        said = normalize(strip_polite_words(text)[-1].text)
        return said if said and said not in self._vectors else None

    def remember(self, said: str, vector: "NDArray[np.float32]") -> None:
        """Keeps the vector of a text that was embedded elsewhere."""
        while len(self._vectors) >= UNDERSTOOD_REMEMBERED:
            del self._vectors[next(iter(self._vectors))]
        self._vectors[said] = vector

    def completeness(self, text: str, mode: Mode) -> Completeness:
        if _is_long(text):
            return Completeness.UNKNOWN
        tools = self._allowed[mode]
        match = self._match(text, tools)
        is_request = match is not None and "" not in match.args.values()
        # A slot takes any word: "add milk and" could be a request for "milk and". But "turn it on" is no request
        # without its last word, so that belongs to it.
        if ends_with_filler(text) or (
            is_hanging(text) and not (is_request and self._match(without_last_word(text), tools) is None)
        ):
            return Completeness.HANGING
        is_open = is_unfinished(text) or any(
            self._matcher.could_go_on(phrase, tools) for phrase in strip_polite_words(text)
        )
        if match is not None and is_request:
            # Acting on half a request costs more than a moment's wait: "turn off the lights … in the bedroom".
            could_continue = is_open or can_continue(text) or self._writes(match)
            return Completeness.EXTENDABLE if could_continue else Completeness.COMPLETE
        if _is_short_remark(text):
            return Completeness.EXTENDABLE
        if is_listing(text):
            return Completeness.LISTING
        if is_open or match is not None or is_stem(text):
            return Completeness.PARTIAL
        return Completeness.UNKNOWN if len(text.split()) >= MANY_WORDS else Completeness.BRIEF

    def find_request(self, text: str, mode: Mode) -> Run | None:
        """Returns the calls if the whole text is a sentence of a tool, or several of them; None otherwise."""
        if _is_long(text):
            return None
        allowed = self._allowed[mode]
        whole = self._match(text, allowed)
        whole = None if whole is None or self._plan_match(whole) is None else whole
        matches = [] if whole is None else [whole]
        if whole is None or whole.free_chars:
            matches = self._find_several(text, allowed, whole) or matches
        calls = tuple(call for match in matches if (call := self._plan_match(match)) is not None)
        # If there are several requests, no question is asked: the answer could be to any of them.
        is_whole = len(calls) == len(matches) and (len(calls) == 1 or not any(map(self._is_refused, calls)))
        return Run(calls) if calls and is_whole else None

    def _plan_match(self, match: Match) -> PlannedCall | None:
        args = self._fillers[match.template.tool_id].repair(match.args)
        return None if args is None else PlannedCall(match.template.tool_id, args, match.template.say)

    def find_certain(self, text: str, mode: Mode) -> Run | None:
        """Returns the calls of the grammar, or of a tool that reads whose meaning is certain and known by now."""
        if (request := self.find_request(text, mode)) is not None or self.to_embed(text, mode) is not None:
            return request
        ranking = self._rank(text)
        best = None if ranking is None else ranking.best(self._tools)
        if (
            ranking is None
            or best is None
            or ranking.lead(best, self._tools) < CERTAIN
            or self._tools[best].spec.writes
        ):
            return None
        understood = self.understand(text, mode)
        return understood if isinstance(understood, Run) else None

    def complete(self, need: Need, answer: str) -> Run | Need | None:
        """Returns the call with the answer to what was asked for; None if that cannot be the answer."""
        return self._fill(need, self._fillers[need.call.tool_id].answer(need.argument, answer))

    def settle(self, need: Need, value: str) -> Run | Need | None:
        """Returns the call with a value that was collected; None if the tool does not take such a value."""
        tool, shaped = self._tools[need.call.tool_id], self._fillers[need.call.tool_id].shape(need.argument, value)
        problems = tool.arguments.problems({need.argument: shaped})
        is_taken = not any(each["path"].startswith(f"/{need.argument}") for each in problems)
        return self._fill(need, shaped) if is_taken else None

    def _fill(self, need: Need, value: Any) -> Run | Need | None:
        if value is None:
            return None
        return self._plan(need.call.tool_id, {**need.call.args, need.argument: value}, need.call.say)

    def expects(self, need: Need) -> Expectation:
        """Returns what kind of words the answer will have."""
        reader = self._fillers[need.call.tool_id].arguments[need.argument].reader
        return EXPECTED.get(reader, Expectation.NOTHING)

    def ask_first(self, request: Run, text: str) -> Run | Need | None:
        """Returns what has to be asked for instead of a call that the tool would refuse, or that says "something".

        If the rest of the text says it, the call with that: "the rice takes ten minutes, start a timer".
        """
        match request.calls:
            case [call] if call.tool_id in self._fillers:
                is_vague = self._is_refused(call) or any(map(_is_vague, call.args.values()))
                need = self.find_missing(call) if is_vague or "" in call.args.values() else None
                found = None if need is None else self._find_elsewhere(need, text)
                # Some tools ask by themselves for what is empty.
                return found or (need if is_vague else None)
        return None

    def _is_refused(self, call: PlannedCall) -> bool:
        """Whether the gate would refuse the call for its arguments."""
        arguments = self._tools[call.tool_id].arguments
        return not arguments.accepts(arguments.complete(dict(call.args))[0])

    def _find_elsewhere(self, need: Need, text: str) -> Run | None:
        """Returns the call with the one time or number that the text has, if such a thing is missing."""
        filler = self._fillers[need.call.tool_id]
        reader = filler.arguments[need.argument].reader
        found = find(reader, text) if reader in TIMES else []
        completed = self.complete(need, found[0].text) if len(found) == 1 else None
        return completed if isinstance(completed, Run) else None

    def find_missing(self, call: PlannedCall) -> Need | None:
        """Returns what has to be asked for before a call of the grammar can do anything."""
        planned = self._plan(call.tool_id, call.args, call.say)
        return planned if isinstance(planned, Need) else None

    def _plan(self, tool_id: str, args: Mapping[str, Any], say: str | None = None) -> Run | Need | None:
        filler = self._fillers.get(tool_id)
        if filler is None:
            return None
        filled = filler.check(args)
        call = PlannedCall(tool_id, filled.args, say)
        if filled.missing is not None:
            kind = EXPECTED.get(filler.arguments[filled.missing].reader)
            asked = Wanted(kind) if kind is not None and can_collect(kind) else None
            return Need(call, filled.missing, filler.question(filled.missing), asked)
        return Run((call,), tier=Tier.MEANING) if filled.can_run else None

    def favourites(self, tools: Sequence[str], mode: Mode) -> list[str]:
        """Returns an example for each of these tools that there is in this mode; for all tools if there is none."""
        wanted = frozenset(tools) & self._allowed[mode]
        return self._suggestions.examples(wanted) or self.examples[mode]

    def _understand(self, text: str, mode: Mode) -> Understood:
        if _is_long(text):
            return Say(replies.TOO_LONG)
        if (request := self.find_request(text, mode)) is not None:
            return self.ask_first(request, text) or request
        words = words_of(text)
        if (recall := find_recall(words)) is not None:
            return Remember(recall)
        elsewhere = self._match(text, frozenset(self._tools) - self._allowed[mode])
        if elsewhere is not None:
            return Say(replies.only_in(self._tools[elsewhere.template.tool_id].spec.allowed_modes))
        if is_declined(text):
            return Say(replies.LEFT_ALONE)
        return self._guess(text, mode)

    def _find_match(self, text: str, tools: frozenset[str]) -> Match | None:
        found = [match for phrase in strip_polite_words(text) for match in self._matcher.matches(phrase, tools)]
        found.sort(key=lambda match: match.order)
        # The best one whose arguments can be read: "leave for the station at five" does not end with "for the station".
        return next((match for match in found if self._plan_match(match) is not None), found[0] if found else None)

    def _writes(self, match: Match) -> bool:
        return self._tools[match.template.tool_id].spec.writes

    def _find_several(self, text: str, tools: frozenset[str], whole: Match | None) -> list[Match]:
        """Returns the requests of a sentence that consists of several; none if it may as well be one.

        A slot takes whatever follows, but "what time is it in Tokyo and tell me a joke" is two requests, and so is "set
        a timer for ten minutes and put milk on the list". "Remind me to call Ann and turn off the lights" may be one.
        """
        found = self._split(text, tools, MAX_CLAUSES)
        if not found or whole is None:
            return found
        if not any(map(self._writes, [whole, *found])):
            return found
        is_closed = all(match.free_chars == 0 for match in found[:-1])
        return found if is_closed and _takes_a_joint(whole) else []

    def _split(self, text: str, tools: frozenset[str], most: int) -> list[Match]:
        """Returns at least two and at most `most` requests that the text consists of, the shortest first."""
        for joint in _BETWEEN_CLAUSES.finditer(text):
            first = self._match(text[: joint.start()], tools)
            if first is None:
                continue
            rest = text[joint.end() :]
            others = self._split(rest, tools, most - 1) if most > 2 else []
            if not others and (last := self._match(rest, tools)) is not None:
                others = [last]
            # A yes must be the answer to one question.
            if others and sum(map(self._asks_first, [first, *others])) <= 1:
                return [first, *others]
        return []

    def _asks_first(self, match: Match) -> bool:
        tool = self._tools[match.template.tool_id]
        args, _ = tool.arguments.complete(dict(match.args))
        return tool.arguments.accepts(args) and must_confirm(tool, args, untrusted=False)

    def _rank(self, text: str) -> Ranking | None:
        """Returns how well the text fits each tool by its meaning; None without an embedding model."""
        said = normalize(strip_polite_words(text)[-1].text)
        if self._meaning is None or self._embed is None or not said:
            return None
        if said not in self._vectors:
            self.remember(said, self._embed([said])[0])
        return self._meaning.rank(self._vectors[said])

    def _guess_meaning(self, text: str, phrases: Sequence[Phrase], ranking: Ranking, mode: Mode) -> Understood | None:
        phrase = phrases[-1]
        form = read_form(text, phrase.text)
        tools = frozenset(id for id, tool in self._tools.items() if form.writes in (None, tool.spec.writes))
        best = ranking.best(tools)
        if best is None or is_cut_off(text) or forbids(phrase.text):
            return None
        lead = self._lead(ranking, best, tools)
        if best == lookup.WORLD:
            lead += WORLD_ADVANTAGE if lookup.asks_about_world(text) else -WORLD_ADVANTAGE
        tool = self._tools[best]
        if lead < CLEAR or (form.is_remark and not tool.spec.writes):
            return None
        if best not in self._allowed[mode]:
            return Say(replies.only_in(tool.spec.allowed_modes)) if lead >= CLEARER else None
        filler = self._fillers[best]
        filled = filler.fill(phrase.source(0, len(phrase.text)).rstrip(" .!?"))
        # "Did you take the bins out" names no device.
        is_about_devices = any(each.reader is Reader.DEVICE for each in filler.arguments.values())
        can_run = filled.can_run and bool(filled.args or not is_about_devices)
        planned = self._plan(best, filled.args) if can_run else None
        words = [word for word, _, _ in phrase.words()]
        has_time = any(each.reader in TIMES and name in filled.args for name, each in filler.arguments.items())
        is_clear = (
            lead >= (CLEAR_WITH_TIME if has_time else CLEARER)
            and NEGATIONS.isdisjoint(words)
            and not filler.overlooks_time(phrase.text, filled.args)
        )
        if is_about_devices and tool.spec.writes and form.is_remark:
            if tells_the_past(phrase.text):
                return None
            is_clear = is_clear and wants_something(phrase.text)
        match planned:
            case Need():
                return planned if is_clear or (form.is_command and len(words) <= SHORT) else None
            case Run() if not tool.spec.writes:
                return Run(planned.calls, None if best == lookup.TOOL else find_question(text), Tier.MEANING)
            case Run() if is_clear:
                return planned
            case Run():
                sentence = self._suggestions.phrase(best, filled.args)
                return None if sentence is None else Ask(replies.did_you_mean(sentence), planned.calls[0])
        return None

    def _lead(self, ranking: Ranking, best: str, tools: frozenset[str]) -> float:
        """Returns by how much a tool leads the others. Which of two tools that read is meant matters less than whether
        one is."""
        lead = ranking.lead(best, tools)
        if self._tools[best].spec.writes:
            return lead
        return min(lead + AMONG_READERS, ranking.lead(best, {id for id in tools if self._tools[id].spec.writes}))

    def _guess(self, text: str, mode: Mode) -> Understood:
        phrases = strip_polite_words(text)
        ranking = self._rank(text)
        guess = self._guess_sum(phrases[-1], mode) or self._guess_words(text, phrases, ranking, mode)
        if (guess is None or isinstance(guess, Ask)) and ranking is not None:
            meant = self._guess_meaning(text, phrases, ranking, mode)
            guess = meant if guess is None or isinstance(meant, Run) else guess
        if guess is not None:
            return guess
        count = replies.SUGGESTIONS[mode]
        nearest = [] if ranking is None else ranking.nearest(self._allowed[mode])
        near = self._suggestions.near(
            phrases[-1],
            self._allowed[mode],
            count,
            said=phrases[0],
            nearest=nearest,
            max_words=replies.SUGGESTED_WORDS[mode],
        )
        suggested = list(near.values()) or replies.some(self.examples[mode], count, text)
        asks = text.rstrip().endswith("?") or is_question(phrases[-1].text)
        return Unknown(replies.unknown(suggested, mode, is_question=asks), find_question(text))

    def _guess_sum(self, phrase: Phrase, mode: Mode) -> Run | None:
        """Returns the calculation that the whole text is, in whatever words: "one point five times six"."""
        said = _BEFORE_SUM.sub("", phrase.source(0, len(phrase.text)).rstrip(" .!?="))
        sums = find(Reader.EXPRESSION, said)
        if not sums or sums[0].end - sums[0].start < len(said) or is_whole(Reader.WHEN, said):
            return None
        for tool_id, filler in self._fillers.items():
            for name, argument in filler.arguments.items():
                if argument.reader is Reader.EXPRESSION and tool_id in self._allowed[mode]:
                    planned = self._plan(tool_id, {name: sums[0].text})
                    return planned if isinstance(planned, Run) else None
        return None

    def _guess_words(
        self, text: str, phrases: Sequence[Phrase], ranking: Ranking | None, mode: Mode
    ) -> Understood | None:
        """Guesses by words that are misspelt, missing or too many. Where the meaning is known, it must be near, and
        words may only be misspelt."""
        closest = self._fuzzy.closest([phrases[0], phrases[-1]], self._allowed[mode])
        if closest and (len(closest) == 1 or closest[0].score - closest[1].score >= CLEARLY_CLOSER):
            guess = closest[0].match
            call = self._plan_match(guess)
            is_slip = ranking is not None and _is_slip(closest[0].text, phrases)
            if call is None or (ranking is not None and not (is_slip and call.tool_id == ranking.best(self._tools))):
                return None
            if not self._writes(guess):
                # "How many days of vacation do I have" is close to "how many days to {date}", and may be a question.
                return Run((call,), find_question(text) if guess.free_chars else None)
            # "How do I lock the door" does not ask to lock it.
            if closest[0].score >= MIN_SCORE_TO_ASK and not is_question(phrases[-1].text):
                return Ask(replies.did_you_mean(closest[0].text), call)
        return None


def _is_short_remark(text: str) -> bool:
    """Whether it is a greeting, thanks, a yes or a question about the conversation, which may be complete, or the
    beginning of a request."""
    words = words_of(text)
    return small_talk.find(words) is not None or find_recall(words) is not None or verdict(text) is not None


def _is_slip(text: str, phrases: Iterable[Phrase]) -> bool:
    """Whether the text differs from what was said by no more than the spelling of a word or two."""
    return any(
        len(text.split()) == len(phrase.text.split())
        and fuzz.ratio(text.lower(), phrase.text.lower()) >= SLIP_SIMILARITY
        for phrase in phrases
    )


def _is_vague(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in VAGUE


def words_of(text: str) -> str:
    """Returns the words in lower case, without punctuation or contractions."""
    return " ".join(word for word, _, _ in Phrase(text).words())


def _takes_a_joint(match: Match) -> bool:
    """Whether what joins two requests is among the words of a slot, and not a word of the template, as in "start voice
    mode and {pending_request}"."""
    return any(isinstance(value, str) and _BETWEEN_CLAUSES.search(value) for value in match.args.values())


def _is_long(text: str) -> bool:
    # Spelled out, "1+2" is three times as long.
    return len(text) > MAX_CHARS or len(Phrase(text).text) > MAX_CHARS
