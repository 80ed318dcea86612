"""Finds the words in a sentence that can be an argument: a time, a place, a sum, the name of a list.

The parsers of this package decide what can be read; here is only where to look. Each kind of words has a vocabulary:
the longest stretch of such words that its parser reads is found, so that a sentence of twenty words takes few attempts.
"""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache, partial
from typing import Final

from antiphon.words.dates import parse_date, read_when
from antiphon.words.days import MONTHS, WEEKDAYS
from antiphon.words.devices import WARMTH, find_levels, find_room
from antiphon.words.dice import find_dice
from antiphon.words.holidays import HOLIDAY_WORDS
from antiphon.words.lists import LIST_ALIASES
from antiphon.words.numbers import NUMBER_WORDS, parse_number
from antiphon.words.periods import parse_period
from antiphon.words.problems import read_problem
from antiphon.words.repeats import UnsupportedRepeat, parse_repeat
from antiphon.words.schedules import parse_duration
from antiphon.words.times import parse_time
from antiphon.words.zones import is_place_name


class Reader(StrEnum):
    """What an argument is, which tells how it is found in a sentence and how it is read back."""

    WHEN = "when"
    """A day, a time of day or both, or how often: "tomorrow at nine", "in ten minutes", "every weekday at six"."""
    DATE = "date"
    TIME = "time"
    PERIOD = "period"
    """A stretch of the calendar: "next week", "tomorrow afternoon"."""
    DURATION = "duration"
    PLACE = "place"
    NUMBER = "number"
    EXPRESSION = "expression"
    """Something to calculate: sums, percentages, roots, averages."""
    QUANTITY = "quantity"
    """A number with its unit: "five miles"."""
    UNIT = "unit"
    LIST = "list"
    """The name of a list."""
    ITEMS = "items"
    """Things that are put on a list."""
    DEVICE = "device"
    """A device or an area of the home."""
    LEVEL = "level"
    """What a device is set to: "thirty percent", "at 21", "halfway"."""
    DICE = "dice"
    """Dice to roll: "two dice", "a d20", "three eight-sided dice"."""
    TEXT = "text"
    """Any words: what is quoted, or what is left of the sentence."""
    PERSON = "person"
    EMAIL = "email"
    DIGITS = "digits"
    """A number that is read digit by digit, such as a telephone number."""
    SPELLING = "spelling"
    """A word that is spelled out."""


FREE: Final = frozenset({Reader.TEXT, Reader.ITEMS, Reader.PERSON})
"""Readers that take what the others leave."""


@dataclass(frozen=True, slots=True)
class Found:
    text: str
    """The words as they were said."""
    start: int
    end: int

    def overlaps(self, other: "Found") -> bool:
        return self.start < other.end and other.start < self.end


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    """In lower case."""
    start: int
    end: int


_WORD: Final = re.compile(r"[^\W_]+(?:[-'’.:/][^\W_]+)*(?:\.(?=[^\W_]))?%?", re.UNICODE)
_NOW: Final = datetime(2026, 3, 4, 12, tzinfo=UTC)
"""Any moment will do: whether words can be read does not depend on when they are said."""
MAX_RUN: Final = 12
"""The most words that one argument of this kind has. More are not tried, since their pairs are."""

_TIME_UNITS: Final = frozenset(
    f"{unit}{s}"
    for unit in ("second", "sec", "minute", "min", "hour", "hr", "day", "week", "fortnight", "month", "year")
    for s in ("", "s")
)
_FILLERS: Final = frozenset(["a", "an", "and", "the", "of"])
_TIME_WORDS: Final = (
    NUMBER_WORDS
    | _TIME_UNITS
    | _FILLERS
    | HOLIDAY_WORDS
    | {*WEEKDAYS, *(f"{day}s" for day in WEEKDAYS), *MONTHS, *(month[:3] for month in MONTHS), "sept"}
    | {*("today", "tomorrow", "tonight", "yesterday", "now", "noon", "midday", "midnight", "am", "pm", "a.m", "p.m")}
    | {*("morning", "afternoon", "evening", "night", "weekend", "weekends", "weekday", "weekdays", "workday")}
    | {*("at", "in", "on", "by", "for", "from", "to", "past", "after", "before", "until", "between", "till", "through")}
    | {*("this", "next", "last", "every", "each", "daily", "hourly", "weekly", "monthly", "ago", "later", "coming")}
    | {
        *(
            "half",
            "quarter",
            "couple",
            "few",
            "o'clock",
            "oclock",
            "o’clock",
            "around",
            "about",
            "rest",
            "time",
            "other",
            "thing",
            "sharp",
            "dot",
        )
    }
)
_DURATION_WORDS: Final = NUMBER_WORDS | _TIME_UNITS | _FILLERS | {"half", "quarter", "couple", "few", "three-quarters"}
_NEVER_FIRST: Final = frozenset(["and", "of", "past", "time", "ago", "later", "few", "couple", "am", "pm", "o'clock"])
_NEVER_LAST: Final = _words(
    "a an and the of at in on by for from to past after before until this next last every each between till"
    " through around about"
)
_LEADS: Final = re.compile(r"^(?:(?:for|at|on|by|from|around|about) )+", re.IGNORECASE)
_NUMERAL: Final = re.compile(r"\d[\d,.:/]*(?:st|nd|rd|th|am|pm|h|hrs?|m|mins?|s|secs?|%)?")

_UNITS: Final = (
    r"(?:(?:square|cubic|sq|kilo|centi|milli|mega|giga|tera|kibi|fluid|metric|nautical|light)[ -]?)?"
    r"(?:miles?|met(?:er|re)s?|feet|foot|ft|inch(?:es)?|yards?|yd|km|cm|mm|mi|stones?|pounds?|lbs?|ounces?|oz|grams?"
    r"|kgs?|kilos?|tons?|tonnes?|lit(?:er|re)s?|gallons?|quarts?|pints?|cups?|tablespoons?|tbsp|teaspoons?|tsp|ml|celsius"
    r"|fahrenheit|centigrade|kelvin|degrees?(?: (?:celsius|fahrenheit|centigrade|c|f))?|acres?|hectares?|bytes?|bits?"
    r"|kb|mb|gb|tb|knots?|mph|kph|kmh|seconds?|minutes?|hours?|days?|weeks?|fortnights?|months?|years?|decades?"
    r"|centur(?:y|ies)|calories|joules?|watts?|psi|horsepower|bar|volts?|amps?)"
    r"(?:(?: per | an? |/)(?:hour|second|minute|gallon|day|square inch|litre|liter))?"
)
_IN_TWO_UNITS: Final = re.compile(r"stones?|foot|feet|ft", re.IGNORECASE)
_UNIT: Final = re.compile(rf"\b{_UNITS}\b", re.IGNORECASE)
_AMOUNT_WORDS: Final = NUMBER_WORDS | {"a", "an", "half", "quarter", "and", "minus"}
_OPERATORS: Final = _words(
    "plus minus times divided multiplied over percent per cent squared cubed root square cube power factorial"
    " half third quarter double twice triple average mean sum product difference total tip off mod modulo"
    " raised median x"
)
_FORMULA: Final = re.compile(r"(?=.*\d)(?=.*[-+*/×÷^%])[\d\s().,+*/×÷^%x-]+")
_JOINERS: Final = _words(
    "of by and to the a an on from between point negative minus dollars euros pounds dollar euro bucks"
)
_LIST_NAME: Final = re.compile(
    r"\b(?:(?:my|the|our|a|an|this|that|new)\s+)?((?:[^\W\d_][\w'’-]*\s+){1,2}?)lists?\b", re.IGNORECASE
)
_CALLED_LIST: Final = re.compile(
    r"\blists?\s+(?:called|named|for|of)\s+((?:(?!(?:with|and)\b)[\w'’-]+\s*){1,3})", re.IGNORECASE
)
_TO_DO_LIST: Final = re.compile(r"\b(?:(?:my|the|our|a)\s+)?to[ -]?do(?:s|'s)?\s+lists?\b", re.IGNORECASE)
_NO_LIST: Final = _words(
    "my the our a an this that to on in from off of new me all any which what is whole entire show read make"
    " create onto into for your"
)
_EMAIL: Final = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[\w.+-]+(?: dot [\w-]+)* at [\w-]+(?: dot [\w-]+)+", re.IGNORECASE
)
_DIGITS: Final = re.compile(r"\+?\d(?:[\s()-]*\d){3,}")
_SPELLING: Final = re.compile(r"\b[a-z](?:[\s.-]+[a-z]){2,}\b", re.IGNORECASE)
_QUOTED: Final = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_PLACE_LEADS: Final = frozenset(["in", "for", "at", "near", "around", "over", "of", "to", "and", "weather", "between"])
_NO_PLACE: Final = _words(
    "the a an my your our here there it bed total that this me out general case order fact time advance"
    " particular person town percent home work now on"
)
_ORDINAL_STEMS: Final = tuple(
    _words("first second third four fif six seven eigh nin ten elev twel thirt twent hundred")
)


def find(reader: Reader, text: str, names: Container[str] = frozenset()) -> list[Found]:
    """Returns where in the text such an argument stands, the longest first. `names` are the words for kinds of devices.

    For a reader of any words that is only what is in quotation marks.
    """
    words = _split(text)
    match reader:
        case Reader.WHEN | Reader.DATE | Reader.TIME | Reader.PERIOD:
            return _runs(text, words, is_time_word, partial(is_whole, reader))
        case Reader.DURATION:
            return _runs(text, words, _is_duration_word, partial(is_whole, reader))
        case Reader.NUMBER:
            return _runs(text, words, _is_amount_word, lambda said: parse_number(said) is not None)
        case Reader.PLACE:
            return _places(text, words)
        case Reader.EXPRESSION:
            return _expressions(text, words)
        case Reader.QUANTITY:
            return _quantities(text, words)
        case Reader.UNIT:
            return _longest_first(Found(match[0], *match.span()) for match in _UNIT.finditer(text))
        case Reader.LIST:
            return _lists(text, words)
        case Reader.DEVICE:
            return _devices(text, words, names)
        case Reader.LEVEL:
            return [Found(*each) for each in find_levels(text, lambda said: parse_number(said) is not None)]
        case Reader.DICE:
            return [Found(*each) for each in find_dice(text)]
        case Reader.EMAIL:
            return [Found(match[0], *match.span()) for match in _EMAIL.finditer(text)]
        case Reader.DIGITS:
            return [Found(match[0], *match.span()) for match in _DIGITS.finditer(text)]
        case Reader.SPELLING:
            return [Found(match[0], *match.span()) for match in _SPELLING.finditer(text)]
    return [Found(match[1], *match.span()) for match in _QUOTED.finditer(text)]


def is_whole(reader: Reader, text: str) -> bool:
    """Whether the parser of a time, or the index of places, knows the whole text."""
    match reader:
        case Reader.WHEN:
            return _is_when(text)
        case Reader.DATE:
            return parse_date(text, _NOW.date()) is not None
        case Reader.TIME:
            return parse_time(text.casefold()) is not None
        case Reader.PERIOD:
            return parse_period(text, _NOW) is not None
        case Reader.DURATION:
            return parse_duration(text) is not None
        case Reader.PLACE:
            return is_place_name(text)
    return False


def reads(reader: Reader, text: str, names: Container[str] = frozenset()) -> bool:
    """Whether the whole text is such an argument, as in the answer to a question for it."""
    said = text.strip(" .,!?")
    if reader in FREE or reader in (Reader.LIST, Reader.DEVICE, Reader.PLACE, Reader.UNIT):
        return 0 < len(said) <= 200
    return any(found.end - found.start >= len(said) * 0.6 for found in find(reader, said, names))


def _split(text: str) -> list[_Word]:
    return [_Word(match[0].lower(), *match.span()) for match in _WORD.finditer(text)]


def _longest_first(found: Iterator[Found]) -> list[Found]:
    return sorted(found, key=lambda each: (each.start - each.end, each.start))


def is_time_word(word: str) -> bool:
    return (
        word in _TIME_WORDS
        or _NUMERAL.fullmatch(word) is not None
        or _is_ordinal(word)
        or ("-" in word and all(part in _TIME_WORDS for part in word.split("-")))
    )


def _is_duration_word(word: str) -> bool:
    word = word.removesuffix("'s").removesuffix("’s")
    return (
        word in _DURATION_WORDS
        or _NUMERAL.fullmatch(word) is not None
        or all(part in _DURATION_WORDS for part in word.split("-"))
    )


def _is_amount_word(word: str) -> bool:
    return word in _AMOUNT_WORDS or _NUMERAL.fullmatch(word) is not None


@lru_cache(1024)
def _is_ordinal(word: str) -> bool:
    return word.endswith(("st", "nd", "rd", "th", "first", "second", "third")) and any(
        word.startswith(stem) for stem in _ORDINAL_STEMS
    )


def _is_when(said: str) -> bool:
    try:
        # "At six" is a time, but "six" is none, while "for six thirty" is read without its "for".
        forms = {said, _LEADS.sub("", said)}
        return any(read_when(each, _NOW) is not None or parse_repeat(each) is not None for each in forms)
    except UnsupportedRepeat:
        return True
    except (ValueError, OverflowError):
        return False


def _runs(
    text: str, words: Sequence[_Word], is_part: Callable[[str], bool], can_read: Callable[[str], bool]
) -> list[Found]:
    """Finds the longest stretches of words of the vocabulary that can be read. They do not overlap."""
    found: list[Found] = []
    at = 0
    while at < len(words):
        end = at
        while (
            end < len(words)
            and is_part(words[end].text)
            and not (end > at and _is_apart(text, words[end - 1 : end + 1]))
        ):
            end += 1
        run = words[at:end]
        if run:
            found += _within(text, run, can_read)
        at = max(end, at + 1)
    return _longest_first(iter(found))


def _is_apart(text: str, pair: Sequence[_Word]) -> bool:
    return any(sign in text[pair[0].end : pair[1].start] for sign in ".;!?")


def _within(text: str, run: Sequence[_Word], can_read: Callable[[str], bool]) -> Iterator[Found]:
    for length in range(min(len(run), MAX_RUN), 0, -1):
        for first in range(len(run) - length + 1):
            part = run[first : first + length]
            if part[0].text in _NEVER_FIRST or part[-1].text in _NEVER_LAST:
                continue
            said = text[part[0].start : part[-1].end]
            if can_read(said.replace("’", "'")):
                yield from _within(text, run[:first], can_read)
                yield Found(said, part[0].start, part[-1].end)
                yield from _within(text, run[first + length :], can_read)
                return


def _places(text: str, words: Sequence[_Word]) -> list[Found]:
    """Finds known places; else what follows "in", as a place that nobody here knows may be known to a service."""
    found: list[Found] = []
    at = 0
    while at < len(words):
        for length in range(min(4, len(words) - at), 0, -1):
            part = words[at : at + length]
            said = text[part[0].start : part[-1].end]
            before = words[at - 1].text if at else ""
            # "Nice" and "Reading" are words, too.
            is_marked = before in _PLACE_LEADS or said[0].isupper() or length > 1 or at + length == len(words)
            if is_marked and part[0].text not in _NO_PLACE | _PLACE_LEADS and is_place_name(said):
                found.append(Found(said, part[0].start, part[-1].end))
                at += length - 1
                break
        at += 1
    return found or _unknown_place(text, words)


def _unknown_place(text: str, words: Sequence[_Word]) -> list[Found]:
    for at in range(len(words) - 2, -1, -1):
        if words[at].text != "in":
            continue
        part = []
        for word in words[at + 1 : at + 4]:
            if word.text in _NO_PLACE or is_time_word(word.text) or word.text in _PLACE_LEADS:
                break
            part.append(word)
        if part:
            return [Found(text[part[0].start : part[-1].end], part[0].start, part[-1].end)]
    return []


def _expressions(text: str, words: Sequence[_Word]) -> list[Found]:
    """Finds stretches of numbers and operations that have at least one of each, or makes a sum of a word problem."""
    if (problem := read_problem(text)) is not None:
        return [Found(problem, 0, len(text))]
    if _FORMULA.fullmatch(text.strip()):
        return [Found(text.strip(), 0, len(text))]

    def is_number(word: str) -> bool:
        return word in NUMBER_WORDS or _NUMERAL.fullmatch(word) is not None

    found: list[Found] = []
    at = 0
    while at < len(words):
        end = at
        while end < len(words) and (
            is_number(words[end].text) or words[end].text in _OPERATORS or words[end].text in _JOINERS
        ):
            end += 1
        part = list(words[at:end])
        while part and part[0].text in _JOINERS - {"negative", "minus"}:
            part.pop(0)
        while part and part[-1].text in _JOINERS - {"dollars", "euros", "pounds", "dollar", "euro", "bucks"}:
            part.pop()
        said = text[part[0].start : part[-1].end] if part else ""
        has_operation = any(w.text in _OPERATORS for w in part) or re.search(r"\d\s*[-+*/×÷^%]", said) is not None
        # "Fifteen percent" alone is no sum.
        is_share = all(w.text in ("percent", "per", "cent") or is_number(w.text) for w in part)
        if (
            has_operation
            and not is_share
            and any(is_number(w.text.rstrip("%")) and w.text not in _OPERATORS for w in part)
        ):
            found.append(Found(said, part[0].start, part[-1].end))
        at = max(end, at + 1)
    return _longest_first(iter(found))


def _quantities(text: str, words: Sequence[_Word]) -> list[Found]:
    found = []
    for match in _UNIT.finditer(text):
        before = [word for word in words if word.end <= match.start()]
        part: list[_Word] = []
        while before and _is_amount_word(before[-1].text) and text[before[-1].end : match.start()].count(",") == 0:
            part.insert(0, before.pop())
        while part and part[0].text in ("and",):
            part.pop(0)
        attached = re.search(r"\d[\d.,]*$", text[: match.start()])
        if part:
            end = match.end()
            if _IN_TWO_UNITS.fullmatch(match[0]):
                # "Six foot two", "eleven stone four": the smaller unit is not said.
                more = [word for word in words if word.start >= end][:1]
                end = more[0].end if more and parse_number(more[0].text) is not None else end
            found.append(Found(text[part[0].start : end], part[0].start, end))
        elif attached:
            found.append(Found(text[attached.start() : match.end()], attached.start(), match.end()))
    return _longest_first(iter(found))


def _lists(text: str, words: Sequence[_Word]) -> list[Found]:
    found = []
    if to_do := _TO_DO_LIST.search(text):
        return [Found("to do", *to_do.span())]
    for match in list(_CALLED_LIST.finditer(text)) or _LIST_NAME.finditer(text):
        named = [word for word in match[1].split() if word.lower() not in _NO_LIST]
        if named:
            start = text.index(named[0], match.start(1))
            found.append(Found(" ".join(named), start, match.end()))
    if not found:
        found = [Found(word.text, word.start, word.end) for word in words if word.text in LIST_ALIASES]
    return found


def _devices(text: str, words: Sequence[_Word], names: Container[str]) -> list[Found]:
    """Finds names of kinds of devices, with the words before them that tell which one."""
    found = []
    for at, word in enumerate(words):
        name = word.text.removesuffix("'s").removesuffix("’s")
        pair = f"{words[at - 1].text} {name}" if at else ""
        if name not in names and pair not in names:
            continue
        first = at if name in names else at - 1
        while first and words[first - 1].text not in _BEFORE_DEVICES and at - first < 3:
            first -= 1
        if not first or words[first - 1].text not in ("the", "my", "all", "our", "both", "every", "any", "of"):
            # Without an article the words before it are a verb or a remark: "please brighten lights".
            first = at if name in names else at - 1
        end = word.end - len(word.text) + len(name)
        found.append(Found(text[words[first].start : end], words[first].start, end))
    # "The lights in the kitchen" are the kitchen lights, and so are "the lights on in the kitchen".
    rooms = [each for each in found if find_room(each.text) is not None]
    others = [each for each in found if each not in rooms]
    for room in rooms:
        if len(rooms) == 1 and others and _IN.search(text[: room.start]):
            return [Found(f"{room.text} {others[0].text}", others[0].start, others[0].end)]
    if rooms and not others and WARMTH.search(text):
        return [Found(f"{room.text} heating", room.start, room.end) for room in rooms]
    return sorted(_longest_first(iter(found)), key=lambda each: each in rooms)


_IN: Final = re.compile(r"\bin\s+(?:(?:the|my|our)\s+)?\Z", re.IGNORECASE)
_BEFORE_DEVICES: Final = _words(
    "the my all our both every a an to in on off of is are any and up down if that me some your"
)
