"""Fills a tool's arguments from a request that no template matches, by the readers that the tool names for them."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hassil import TextSlotList

from antiphon.models.builtin.fuzzy import SMALL_WORDS
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import words
from antiphon.sentences.templates import Argument, Grammar
from antiphon.tools.tool import Tool
from antiphon.words.days import WEEKDAYS
from antiphon.words.devices import trim_name
from antiphon.words.numbers import NUMBER_WORDS, parse_ordinal
from antiphon.words.problems import read_problem
from antiphon.words.readers import FREE, Found, Reader, find, is_time_word, is_whole, reads

ORDER: Final = (
    *(Reader.EMAIL, Reader.LIST, Reader.QUANTITY, Reader.EXPRESSION, Reader.WHEN, Reader.DURATION, Reader.PERIOD),
    *(Reader.DATE, Reader.TIME, Reader.PLACE, Reader.DEVICE, Reader.LEVEL, Reader.DICE, Reader.UNIT, Reader.NUMBER),
    *(Reader.DIGITS, Reader.SPELLING, Reader.PERSON, Reader.ITEMS, Reader.TEXT),
)
"""What says most about the words it finds comes first. Any words are what is left in the end."""
TIMES: Final = frozenset({Reader.WHEN, Reader.DATE, Reader.TIME, Reader.PERIOD, Reader.DURATION})
VAGUE: Final = frozenset(
    ["it", "them", "that", "this", "these", "those", "one", "something", "anything", "stuff", "things", "somebody"]
)
"""Words for something that was not said."""
COMMON_IN_EXAMPLES: Final = 3
"""A word of so many examples of a tool belongs to the request, not to what it is about."""
MIN_CHOICE_CHARS: Final = 3
"""A shorter value must be said exactly: "on" is not in "one"."""

_SYNONYMS: Final = {
    "up": frozenset(["brighten", "brighter", "bright", "raise", "increase", "more", "warmer", "louder"]),
    "down": frozenset(["lower", "decrease", "darker", "dimmer", "reduce", "less", "cooler", "quieter"]),
    "off": frozenset(["kill"]),
    "on": frozenset(["activate", "start"]),
    "close": frozenset(["shut"]),
}
"""Other words for values that many tools have."""
_LESS: Final = {
    **dict.fromkeys(("bright", "light", "hot", "warm", "loud", "high"), "lower"),
    **dict.fromkeys(("dark", "dim", "cold", "chilly", "quiet", "low"), "raise"),
}
_TOO_MUCH: Final = re.compile(rf"\btoo ({'|'.join(_LESS)})\b", re.IGNORECASE)
"""What is too much should be less."""
_CLAUSE: Final = re.compile(r"\b(?:to|about|that|called|named|titled|saying)\s+(?=\S)", re.IGNORECASE)
_MARKED: Final = re.compile(
    r"\b(?:(?:called|named|titled|label(?:l)?ed|about|(?:call|name|label)(?: (?:it|that))?)\s+(?:the\s+)?|"
    r"for\s+(?:(?:the|my|our|an?)\s+)?)(?P<name>\S.*)",
    re.IGNORECASE,
)
_NAMING: Final = re.compile(r"^(?:and |,\s*)?(?:call|name|label)(?: (?:it|that))? (?:the )?", re.IGNORECASE)
_KIND: Final = re.compile(r"(?P<name>[^\W\d_]+(?: [^\W\d_]+)?) (?:timer|alarm|countdown)\b", re.IGNORECASE)
"""What introduces words that need not be there."""
_QUESTION: Final = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can)\b", re.I
)
_ASKING_LIST: Final = """
    add put stick pop throw write jot note down pencil block book reserve arrange schedule fit save plan set make create
    scrap cancel drop wipe delete remove rid kill erase strike scratch cross tick unschedule skip stop forget remember
    remind reminder sure mind keep don't mustn't can't won't isn't aren't i'm i've i'd it's that's there's let's we're
    calendar diary agenda schedule list lists entry event slot date please thanks more new got going having any whole
    search look browse google online web internet find check pull open show bring fetch load read explain briefly short
"""
_ASKING: Final = frozenset(_ASKING_LIST.split())
"""Words that ask for something and are seldom what it is about."""
_LEAD_IN: Final = re.compile(r"^(?:(?:for|saying|called|named|titled|about|of|the|my|at|on)\b[\s,]*)+", re.IGNORECASE)
_AT_PRESENT: Final = re.compile(
    r"\s+(?:at the moment|at present|right now|just now|currently|these days|now)\Z", re.IGNORECASE
)
_NOTHING: Final = frozenset(["me", "us", "you", "a", "an", "the", "my", "our", "for", "in", "at", "of"])
_FILLERS: Final = SMALL_WORDS | {"moment", "looking", "like", "currently", "today", "tomorrow", "tonight", "exactly"}
_HAS_TIME: Final = re.compile(
    r"\d|\b(?:" + "|".join(sorted(NUMBER_WORDS)) + r"|seconds?|minutes?|hours?|half|quarter|days?|weeks?)\b", re.I
)
_DAYS: Final = re.compile(
    r"\b(?:"
    + "|".join(WEEKDAYS)
    + r"|weekdays?|weekends?|every|each|daily|weekly|monthly|tomorrow|tonight|noon|midnight)\b",
    re.IGNORECASE,
)
_BREAK: Final = re.compile(r"[,.;:!?]+(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Filled:
    args: Mapping[str, Any]
    missing: str | None
    """The first argument that must be there and is not."""
    can_run: bool
    """Whether the tool takes the arguments. If something is missing, whether it would with that."""


class Filler:
    """Knows how to fill the arguments of one tool."""

    def __init__(self, tool: Tool, grammar: Grammar) -> None:
        self._tool = tool
        self.arguments: Mapping[str, Argument] = grammar.arguments
        self._properties: Mapping[str, Any] = tool.spec.parameters.get("properties", {})
        self._required = [
            name for name in tool.spec.parameters.get("required") or () if "default" not in self._properties[name]
        ]
        said = {value for schema in self._properties.values() for value in schema.get("enum", ())}
        self._names = frozenset(_names(grammar)) - said
        self._kinds = frozenset(name for name in self._names if " " not in name and not is_time_word(name))
        self._request_words = _request_words(grammar)

    def fill(self, text: str) -> Filled:
        """Reads all arguments from a request."""
        args: dict[str, Any] = {}
        taken: list[Found] = []
        for name, argument in sorted(self.arguments.items(), key=lambda each: ORDER.index(each[1].reader)):
            found = self._find(name, argument, text, taken)
            if found is None and argument.reader not in FREE:
                # "Am I free on Friday" names the day from which and until which.
                is_shared = name in self._required and argument.reader in TIMES
                found = next(iter(find(argument.reader, text, self._names)), None) if is_shared else None
            value = None if found is None else self.shape(name, found.text)
            if found is not None and value is not None:
                args[name] = value
                taken.append(found)
        args |= self._choices(text, taken)
        filled = self.check(args)
        is_sum = filled.missing is not None and self.arguments[filled.missing].reader is Reader.EXPRESSION
        if is_sum and find(Reader.NUMBER, text):
            # It was said, but not in words that can be read. A question for it would sound deaf.
            return Filled(args, None, can_run=False)
        return filled

    def repair(self, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the arguments of a template's slots, without the words around a time that belong to something else:
        "three minutes for my tea" is three minutes. None if a slot took no more than "the", or what is no device."""
        repaired = dict(args)
        for name, argument in self.arguments.items():
            said = args.get(name)
            if argument.reader is Reader.DEVICE and isinstance(said, str) and said:
                if (device := trim_name(said)) is None:
                    return None
                repaired[name] = device
                continue
            if (
                not isinstance(said, str)
                or not said
                or not (argument.reader in TIMES or argument.reader is Reader.PLACE)
            ):
                continue
            if argument.reader is Reader.PLACE:
                said = repaired[name] = _AT_PRESENT.sub("", said)
            if _NOTHING.issuperset(said.lower().split()):
                if argument.ask is None:
                    return None
                repaired[name] = ""
            elif argument.ask is not None and argument.reader is Reader.DURATION and not _HAS_TIME.search(said):
                repaired |= self._swap(name, said, args)
            elif not is_whole(argument.reader, said):
                shorter = self._shorten(name, argument.reader, said, args)
                if shorter is None:
                    return None
                repaired |= shorter
        for name, argument in self.arguments.items():
            said = args.get(name)
            if argument.reader is Reader.EXPRESSION and isinstance(said, str):
                repaired[name] = _only_sum(said)
        return repaired | self._move_time(repaired)

    def _move_time(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a text and a time if the text ends with a part of the time: "take my tablets at ten", "tonight"."""
        times = [n for n, each in self.arguments.items() if each.reader is Reader.WHEN and args.get(n)]
        texts = [n for n, each in self.arguments.items() if each.reader is Reader.TEXT and args.get(n)]
        if len(times) != 1 or len(texts) != 1:
            return {}
        text, time = str(args[texts[0]]), str(args[times[0]])
        words, _, last_word = text.rpartition(" ")
        if words and last_word in ("on", "at", "by", "in") and is_whole(Reader.WHEN, f"{last_word} {time}"):
            return {texts[0]: words, times[0]: f"{last_word} {time}"}
        last = max(find(Reader.WHEN, text), key=lambda found: found.end, default=None)
        if last is None or last.end < len(text.rstrip(" .!?")) or last.start == 0:
            return {}
        whole = next(
            (each for each in (f"{time} {last.text}", f"{last.text} {time}") if is_whole(Reader.WHEN, each)), None
        )
        return {} if whole is None else {texts[0]: text[: last.start].rstrip(" ,"), times[0]: whole}

    def _swap(self, name: str, said: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a length of time and an optional text for a slot that has no time.

        "A timer for the rice" does not say how long, and "a ten minute timer for the rice" says it before.
        """
        texts = [n for n, each in self.arguments.items() if each.reader is Reader.TEXT and each.ask is None]
        if not texts:
            return {name: ""}
        label = args.get(texts[0]) or ""
        if label and not is_whole(Reader.DURATION, label):
            return {name: ""}
        return {name: label, texts[0]: _LEAD_IN.sub("", said).strip(" ,.;")}

    def overlooks_time(self, text: str, args: Mapping[str, Any]) -> bool:
        """Whether the text has a day or a rhythm that none of the arguments has: "a weekday alarm at six"."""
        if not any(each.reader in TIMES for each in self.arguments.values()):
            return False
        read = " ".join(str(value).lower() for value in args.values())
        return any(word.lower() not in read for word in (*_DAYS.findall(text), *_HAS_TIME.findall(text)))

    def _shorten(self, name: str, reader: Reader, said: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the part of a slot that can be read, and optional arguments that the rest of it is about; None if the
        rest says something that would be lost."""
        if reader is Reader.WHEN and is_whole(reader, f"at {said}"):
            return {}
        found = next(iter(find(reader, said)), None)
        if found is None:
            return {}
        rest = f"{said[: found.start]} {said[found.end :]}".strip()
        is_other_place = reader is Reader.PLACE and not _is_filler(rest)
        if find(reader, rest) or find(Reader.NUMBER, rest) or _has_ordinal(rest) or is_other_place:
            # There is another one, as in "seven and another one for seven fifteen", or a day that does not exist, as in
            # "february thirtieth".
            return {}
        shorter: dict[str, Any] = {name: found.text}
        for other, argument in self.arguments.items():
            if other == name or args.get(other):
                continue
            if argument.ask is not None:
                # "A reminder for the vet, saturday at eleven" has its message among the words of the time.
                if argument.reader is Reader.TEXT and self._content(rest):
                    shorter[other] = _LEAD_IN.sub("", rest).strip(" ,.;")
                continue
            if argument.reader in TIMES and (time := next(iter(find(argument.reader, rest)), None)) is not None:
                shorter[other] = time.text
            elif argument.reader is Reader.TEXT and (marked := _MARKED.search(f"for {rest}")) is not None:
                shorter[other] = _NAMING.sub("", marked["name"].strip())
        is_lost = self._tool.spec.writes and len(shorter) == 1 and bool(self._content(rest))
        return None if is_lost else shorter

    def answer(self, name: str, text: str) -> Any:
        """Returns the argument that was asked for, if the whole text can be read as one; None otherwise."""
        reader = self.arguments[name].reader
        said = text.strip().rstrip(".!?")
        if not reads(reader, said, self._names):
            return None
        found = [] if reader in FREE or reader is Reader.EXPRESSION else find(reader, said, self._names)
        return self.shape(name, found[0].text if found else said)

    def check(self, args: Mapping[str, Any]) -> Filled:
        """Tells what is missing, and whether the tool would take the arguments."""
        needed = dict.fromkeys([*self._required, *(n for n, each in self.arguments.items() if each.ask is not None)])
        absent = [name for name in needed if self._is_absent(args.get(name))]
        asked = [name for name in absent if self._ask(name) is not None]
        if not absent:
            complete, _ = self._tool.arguments.complete(dict(args))
            return Filled(args, None, self._tool.arguments.accepts(complete))
        return Filled(args, asked[0] if asked else None, bool(asked) and absent == asked)

    def _is_absent(self, value: object) -> bool:
        return value in (None, "") or (isinstance(value, str) and value.strip().lower() in VAGUE)

    def _ask(self, name: str) -> str | None:
        argument = self.arguments.get(name)
        return None if argument is None else argument.ask

    def question(self, name: str) -> str:
        return self._ask(name) or ""

    def _find(self, name: str, argument: Argument, text: str, taken: Sequence[Found]) -> Found | None:
        free = [each for each in find(argument.reader, text, self._names) if not any(map(each.overlaps, taken))]
        if free:
            return free[0]
        if argument.reader not in FREE:
            return None
        if argument.ask is None and name not in self._required:
            return self._marked(text, taken)
        if argument.reader is Reader.TEXT and (kinds := find(Reader.DEVICE, text, self._kinds)):
            # "The pasta is done, stop the timer": what is named by its kind.
            return kinds[0]
        if not taken and argument.reader is Reader.TEXT and _QUESTION.match(text):
            return Found(text, 0, len(text))
        return self._rest(text, taken, is_listing=argument.reader is Reader.ITEMS)

    def _marked(self, text: str, taken: Sequence[Found]) -> Found | None:
        """Returns what is introduced as a name or a subject. Other words need not be an argument at all."""
        for start, end in _gaps(text, taken):
            marked = _MARKED.search(text, start, end)
            if marked is not None and self._content(marked["name"]):
                return Found(marked["name"].strip(" ,.;!?"), *marked.span("name"))
            kind = _KIND.search(text, start, end)
            content = [] if kind is None else self._content(kind["name"])
            if kind is not None and content:
                first, last = kind.start() + content[0][0], kind.start() + content[-1][1]
                return Found(text[first:last], first, last)
        return None

    def _rest(self, text: str, taken: Sequence[Found], *, is_listing: bool) -> Found | None:
        """Returns the longest stretch between what was found that says more than the request itself. Things that are
        listed have commas between them."""
        best: Found | None = None
        most = 0
        for start, end in _gaps(text, taken, at_commas=not is_listing):
            part = text[start:end]
            if (clause := _CLAUSE.search(part)) is not None and self._content(part[clause.end() :]):
                # What follows "to" or "about" is meant as a whole: "to take the bins out".
                start, part = start + clause.end(), part[clause.end() :]
                trimmed = part.rstrip(" ,.;!?")
                found, count = Found(trimmed, start, start + len(trimmed)), 2 * len(self._content(part))
            else:
                content = self._content(part)
                if not content:
                    continue
                first, last = start + content[0][0], start + content[-1][1]
                found, count = Found(text[first:last], first, last), len(content)
            if count > most:
                best, most = found, count
        return best

    def _content(self, part: str) -> list[tuple[int, int]]:
        """Returns where the words are that are neither small nor words of the request."""
        return [
            (match.start(), match.end())
            for match in re.finditer(r"[^\s,.;:!?\"“”]+", part)
            if (word := match[0].lower().replace("’", "'")) not in SMALL_WORDS | _ASKING
            and word not in self._request_words
        ]

    def shape(self, name: str, said: str) -> Any:
        """Returns the words as the schema wants them."""
        said = said.strip(' ,.;!?"“”')
        match self._properties.get(name, {}).get("type"):
            case "array":
                return [said]
            case "integer" | "number":
                from antiphon.words.numbers import parse_number

                return parse_number(said)
        return said or None

    def _choices(self, text: str, taken: Sequence[Found]) -> dict[str, Any]:
        """Returns the arguments of few values of which one is said: "turn the lights off"."""
        said = _TOO_MUCH.sub(lambda match: _LESS[match[1].lower()], Phrase(text).text)
        words = [word for word, _, _ in Phrase(said).words()]
        chosen: dict[str, Any] = {}
        for name, schema in self._properties.items():
            values = [value for value in schema.get("enum", ()) if isinstance(value, str)]
            hits = [value for word in words for value in values if _says(word, value)]
            if name not in self.arguments and len(set(hits)) == 1:
                chosen[name] = hits[0]
        return chosen


def _only_sum(said: str) -> str:
    """Returns the sum without a story before it: "help me with my homework, what is 56 divided by 8"."""
    if (problem := read_problem(said)) is not None:
        return problem
    found = find(Reader.EXPRESSION, said)
    if len(found) != 1 or found[0].start == 0:
        return said
    rest = said[: found[0].start] + said[found[0].end :]
    return said if _HAS_TIME.search(rest) or len(rest.split()) < 3 else found[0].text


def _has_ordinal(text: str) -> bool:
    return any(parse_ordinal(word) is not None for word in re.findall(r"[\w-]+", text))


def _is_filler(text: str) -> bool:
    """Whether the words say nothing about a place."""
    return all(word in _FILLERS or find(Reader.PERIOD, word) for word in text.lower().split())


def _says(word: str, value: str) -> bool:
    if word in _SYNONYMS.get(value, ()):
        return True
    if len(value) < MIN_CHOICE_CHARS:
        return word == value
    if len(word) > MIN_CHOICE_CHARS and value.startswith(word):
        return True  # "humid" asks for the humidity
    return word.startswith(value) or (value.endswith("e") and word.startswith(value[:-1]))


def _gaps(text: str, taken: Sequence[Found], *, at_commas: bool = True) -> list[tuple[int, int]]:
    """Returns the stretches between what was found, and between commas."""
    breaks = [match.span() for match in _BREAK.finditer(text) if at_commas or "," not in match[0]]
    cuts = sorted([(each.start, each.end) for each in taken] + breaks)
    gaps, at = [], 0
    for start, end in cuts:
        if start > at:
            gaps.append((at, start))
        at = max(at, end)
    return [*gaps, (at, len(text))] if at < len(text) else gaps


def _request_words(grammar: Grammar) -> Container[str]:
    """Returns the words of the templates, and those of several examples."""
    fixed = {word.lower() for template in grammar.templates for word in words(template.compiled.tree)}
    count = Counter(word for text in grammar.examples for word in {w for w, _, _ in Phrase(text).words()})
    return fixed | {word for word, times in count.items() if times >= COMMON_IN_EXAMPLES}


def _names(grammar: Grammar) -> list[str]:
    """Returns the words that the lists of the grammar give for a slot, such as kinds of devices."""
    names = [
        value.text_in.text.strip().lower()
        for listed in grammar.lists.values()
        if isinstance(listed, TextSlotList)
        for value in listed.values
        if hasattr(value.text_in, "text")
    ]
    return [name for name in names if name not in SMALL_WORDS]
