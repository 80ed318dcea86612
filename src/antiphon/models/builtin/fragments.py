"""Reads a piece of a sentence, such as "in London" or "20 percent", as the new value of an argument."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from antiphon.models.builtin.fuzzy import SMALL_WORDS
from antiphon.words.dates import parse_date, parse_when
from antiphon.words.days import MONTHS
from antiphon.words.devices import KIND, ROOM, find_room
from antiphon.words.dice import parse_dice
from antiphon.words.lists import NOTES, SHOPPING, TO_DO, list_name
from antiphon.words.numbers import parse_number, write_digits
from antiphon.words.periods import parse_period
from antiphon.words.readers import Reader
from antiphon.words.schedules import ScheduleError, parse_duration, parse_schedule
from antiphon.words.units import UnitError, parse_unit
from antiphon.words.zones import find_place

MAX_CHARS: Final = 80
MAX_NAME_WORDS: Final = 4
_ANY_MOMENT: Final = datetime(2026, 3, 4, 10, tzinfo=UTC)
"""It is only asked whether words are a time, and not which, so any moment will do."""

_NAMES: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(("location", "timezone", "place", "city", "country", "to_timezone", "from_timezone"), Reader.PLACE),
    **dict.fromkeys(("day", "date", "target_date", "from_date"), Reader.DATE),
    **dict.fromkeys(("range", "period", "start_date", "end_date"), Reader.PERIOD),
    **dict.fromkeys(("time", "datetime", "start_time"), Reader.WHEN),
    **dict.fromkeys(("value", "days", "number", "count"), Reader.NUMBER),
    **dict.fromkeys(("area", "entity"), Reader.DEVICE),
    **dict.fromkeys(("topic", "query", "label", "title", "message"), Reader.TEXT),
    **dict.fromkeys(("item", "items"), Reader.ITEMS),
    "duration": Reader.DURATION,
    "expression": Reader.EXPRESSION,
    "from_unit": Reader.QUANTITY,
    "to_unit": Reader.UNIT,
    "list": Reader.LIST,
    "dice": Reader.DICE,
}
"""The kind of a parameter whose tool does not say it."""

_KIND_OF_DEVICE: Final = re.compile(rf".*\b(?:{KIND})", re.IGNORECASE)
_NUMBER: Final = r"-?\d[\d,]*(?:\.\d+)?"
_AMOUNT: Final = re.compile(r"(-?\d[\d.,]*|an?|one)\s+(\D+)", re.IGNORECASE)
_SIDES: Final = re.compile(r"\d*[- ]?sided dice|d\d+", re.IGNORECASE)
_SCALES: Final = re.compile(r"(?:degrees )?(?:celsius|fahrenheit|kelvin|metric|imperial)", re.IGNORECASE)
_THE: Final = re.compile(r"(?:the|my|our|a|an|some)\s+", re.IGNORECASE)


def kind_of(parameter: str) -> Reader | None:
    """Returns the kind of a parameter by its name."""
    return _NAMES.get(parameter)


@dataclass(frozen=True, slots=True)
class Fragment:
    """What is left of an elliptic text without the words that introduce it."""

    text: str
    corrects: bool = False
    """Whether it puts right what was understood before, so that it may be a single word or number."""
    is_marked: bool = True
    """Whether words such as "and" or "what about" introduced it."""

    def bare(self, *prepositions: str) -> tuple[str, str]:
        """Returns the preposition that it begins with, if it is one of these, and the rest."""
        match = re.match(rf"({'|'.join(prepositions)})\s+(?=\S)", self.text, re.IGNORECASE)
        return (match[1].lower(), self.text[match.end() :]) if match else ("", self.text)


def read(kind: Reader, fragment: Fragment, old: Any) -> Any:
    """Returns the new value of an argument of this kind whose value was `old`; None if the words are something else."""
    reader = _READERS.get(kind)
    return None if reader is None or len(fragment.text) > MAX_CHARS else reader(fragment, old)


def is_place(words: str) -> bool:
    return parse_date(words, _ANY_MOMENT.date()) is None and find_place(words) is not None


def _read_place(fragment: Fragment, old: Any) -> str | None:
    preposition, name = fragment.bare("over in", "in", "for", "at", "near", "from", "to")
    if _THE.match(name) and not is_place(name):
        return None
    if is_place(name):
        return name
    words = name.split()
    if not (fragment.is_marked or fragment.corrects) or len(words) > MAX_NAME_WORDS or _is_otherwise_known(name):
        return None
    if any(word.lower() in SMALL_WORDS or not word[0].isalpha() for word in words):
        return None
    # A town that is not known by its time zone: people write it with a capital letter, or say "in".
    return name if preposition in ("in", "near") or all(word[0].isupper() for word in words) else None


def _is_otherwise_known(name: str) -> bool:
    return (
        ROOM.fullmatch(name) is not None
        or _SCALES.fullmatch(name) is not None
        or parse_number(name) is not None
        or parse_period(name, _ANY_MOMENT) is not None
        or parse_duration(name) is not None
    )


def _read_date(fragment: Fragment, old: Any) -> str | None:
    _, words = fragment.bare("until", "till", "for", "on", "at", "over", "in")
    if (day := _beside(words, old)) is not None:
        return day
    for text in (fragment.text, words):
        if parse_date(text, _ANY_MOMENT.date()) is not None:
            return _merge_date(old, words if parse_date(words, _ANY_MOMENT.date()) is not None else text)
    return None


_MONTH: Final = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)
_DAY_NUMBER: Final = re.compile(
    r"(?:the )?(\w+(?:st|nd|rd|th)|twenty.\w+|thirty.first|first|second|third)", re.IGNORECASE
)


def _merge_date(old: Any, said: str) -> str:
    """Keeps the day if only the month is said, and the month if only the day is."""
    month = _MONTH.search(old) if isinstance(old, str) else None
    if month is None:
        return said
    if _MONTH.fullmatch(said):
        return f"{old[: month.start()]}{said}{old[month.end() :]}"
    day = _DAY_NUMBER.fullmatch(said)
    return said if day is None else f"the {day[1]} of {month[0]}"


_NEXT: Final = re.compile(
    r"(?:the )?(?:(?P<after>day after|next day|following day|day after that)|(?P<before>day before|previous day|"
    r"day before that))",
    re.IGNORECASE,
)


def _beside(words: str, old: Any) -> str | None:
    """Returns the day that the words place beside the old one: "the day after"."""
    match = _NEXT.fullmatch(words)
    if match is None or not isinstance(old, str) or parse_date(old, _ANY_MOMENT.date()) is None:
        return None
    return f"the day {'after' if match['after'] else 'before'} {old}"


def _read_period(fragment: Fragment, old: Any) -> str | None:
    _, words = fragment.bare("for", "on", "over", "during")
    if (day := _beside(words, old)) is not None:
        return day
    return words if parse_period(words, _ANY_MOMENT) is not None else None


def _read_when(fragment: Fragment, old: Any) -> str | None:
    """Reads a time. What it does not say is kept of the old one: "at ten" after "tomorrow at nine" is tomorrow."""
    _, words = fragment.bare("for(?= (?:at|on|tomorrow|today|next|every))", "for", "to", "until", "till")
    if not fragment.corrects and parse_number(words) is not None:
        return None
    if (day := _beside(words, old)) is not None:
        return day
    if isinstance(old, str) and (merged := _merge_date(old, words)) != words:
        return merged
    try:
        parse_schedule(words, _ANY_MOMENT)
    except ScheduleError as error:
        if "passed" not in str(error):
            return None
    if not isinstance(old, str) or not old:
        return words
    day, clock = _split_when(words)
    old_day, old_clock = _split_when(old)
    if day is None and clock is not None and old_day is not None:
        return f"{old_day} at {clock}"
    if clock is None and day is not None and old_clock is not None:
        return f"{day} at {old_clock}"
    return words


def _split_when(said: str) -> tuple[str | None, str | None]:
    """Returns the words for the day and for the time of day; either is None if it is not said."""
    words = said.split()
    for at in range(len(words) + 1):
        left, right = " ".join(words[:at]), " ".join(words[at:])
        for day, clock in ((left, right), (right, left)):
            if (not day or _is_day(day)) and (not clock or _is_clock(clock)):
                return day or None, re.sub(r"^(?:at|by|around)\s+", "", clock, flags=re.IGNORECASE) or None
    return None, None


def _is_day(words: str) -> bool:
    when = parse_when(words, _ANY_MOMENT)
    return when is not None and not isinstance(when, datetime)


def _is_clock(words: str) -> bool:
    if parse_duration(words) is not None:
        return False
    bare = re.sub(r"^(?:at|by|around)\s+", "", words, flags=re.IGNORECASE)
    when = parse_when(f"at {bare}", _ANY_MOMENT)
    return isinstance(when, datetime) and parse_date(bare, _ANY_MOMENT.date()) is None


def _read_duration(fragment: Fragment, old: Any) -> str | None:
    _, words = fragment.bare("for", "of", "to")
    if parse_duration(words) is not None:
        return words
    unit = old.split()[-1] if isinstance(old, str) and old.split() else ""
    if fragment.corrects and parse_number(words) is not None and parse_duration(f"2 {unit}") is not None:
        return f"{words} {unit}"
    return None


def _read_number(fragment: Fragment, old: Any) -> int | float | None:
    _, words = fragment.bare("for", "to", "in", "at")
    bare = re.sub(r"\s*(?:%|percent|per cent|degrees?|days?)$", "", words, flags=re.IGNORECASE)
    number = parse_number(bare)
    return None if number is None else number


def _read_quantity(fragment: Fragment, old: Any) -> str | None:
    _, words = fragment.bare("for", "of", "in")
    said = write_digits(words)
    if re.fullmatch(_NUMBER, said) and isinstance(old, str) and (amount := _AMOUNT.fullmatch(write_digits(old))):
        return f"{said} {amount[2]}"
    match = _AMOUNT.fullmatch(said)
    if match is None or not _is_unit(match[2]):
        return None
    return f"{match[1]} {match[2]}"


def _read_unit(fragment: Fragment, old: Any) -> str | None:
    _, words = fragment.bare("in", "to", "into")
    return words if _THE.match(words) is None and _is_unit(words) else None


def _is_unit(words: str) -> bool:
    try:
        parse_unit(words)
    except UnitError:
        return False
    return True


def _read_list(fragment: Fragment, old: Any) -> str | None:
    _, words = fragment.bare("on", "to", "onto", "from", "in", "of")
    named = re.fullmatch(r"(?:(?:my|the|our)\s+)?(.+?)\s+list", words, re.IGNORECASE)
    if named is not None:
        is_name = named[1].lower() not in SMALL_WORDS and len(named[1].split()) <= MAX_NAME_WORDS
        return named[1] if is_name else None
    known = list_name(words)
    return known if known in (NOTES, SHOPPING, TO_DO) else None


def _read_items(fragment: Fragment, old: Any) -> str | None:
    words = re.sub(r"^and\s+", "", fragment.text, flags=re.IGNORECASE)
    if _COMMAND.match(words):
        return None
    named = [word.lower() for word in re.findall(r"[\w'-]+", words)]
    spoken = [word for word in named if word not in ("and", "of", "some", "a", "an", "the", "more")]
    if not spoken or len(spoken) > 2 * MAX_NAME_WORDS or not SMALL_WORDS.isdisjoint(spoken):
        return None
    return _THE.sub("", words, count=1) if _THE.match(words) else words


_COMMAND: Final = re.compile(
    r"(?:remove|delete|take|cross|tick|clear|cancel|drop|move|set|turn|switch|remind|tell|show|read|play|open|call)\b",
    re.I,
)
"""How another request begins, which is no item: "and remove the eggs"."""


def _read_dice(fragment: Fragment, old: Any) -> str | None:
    """Reads dice. A number alone is how many, of the same kind as before: "no, three" after "two d20"."""
    if parse_dice(fragment.text) is None:
        return None
    sides = _SIDES.search(old) if isinstance(old, str) else None
    number = parse_number(fragment.text)
    if number is None:
        return fragment.text
    if not (fragment.is_marked or fragment.corrects):
        return None
    return f"{number} {sides[0]}" if sides is not None else f"{number} dice"


_ASKED: Final = re.compile(
    r"(?P<before>(?:who|what|where|when|how|which)\b.*\b(?:of|in|is|was|are|did|"
    r"about)\s+)(?P<subject>\S+(?: \S+){0,3}?)[?.!]*",
    re.I,
)
"""A question whose last words are what it is about: "what's the capital of France"."""


def _read_text(fragment: Fragment, old: Any) -> str | None:
    preposition, words = fragment.bare("about", "for", "on")
    asked = _ASKED.fullmatch(old) if isinstance(old, str) else None
    if asked is not None and (fragment.is_marked or fragment.corrects) and len(words.split()) <= MAX_NAME_WORDS:
        _, subject = fragment.bare("of", "in", "for", "about")
        return f"{asked['before']}{subject}"
    named = [word.lower() for word in words.split()]
    if preposition == "about" and len(named) <= 2 * MAX_NAME_WORDS:
        return words
    is_name = len(named) <= MAX_NAME_WORDS and SMALL_WORDS.isdisjoint(named)
    return words if is_name and old and (fragment.is_marked or fragment.corrects) else None


_STEP: Final = re.compile(
    r"(?:(?:make|turn|put) (?:it|them|that) )?(?:(?:just )?(?:a (?:little )?(?:bit|little|touch|notch)|slightly|"
    r"even|much|still) )?"
    r"(?:(?P<up>brighter|warmer|hotter|louder|higher|up)|(?P<down>dimmer|darker|cooler|colder|quieter|lower|down))"
    r"(?: a (?:little )?(?:bit|little|touch|notch))?",
    re.IGNORECASE,
)


def find_step(words: str) -> str | None:
    """Returns the way in which a device that was just spoken of should change: "a bit brighter"."""
    match = _STEP.fullmatch(words)
    return None if match is None else "up" if match["up"] else "down"


def change_device(fragment: Fragment, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the arguments of a request about the home for another room, or another device in the same one."""
    entity = args.get("entity")
    if "action" in args and (step := find_step(fragment.text)) is not None:
        return {**{name: value for name, value in args.items() if name != "value"}, "action": step}
    room = find_room(fragment.text)
    if room is not None:
        within = ROOM.search(entity) if isinstance(entity, str) else None
        if isinstance(entity, str) and within is not None:
            return {**args, "entity": f"{entity[: within.start()]}{room}{entity[within.end() :]}"}
        door = re.fullmatch(r"\w+ (doors?|gates?|windows?)", entity) if isinstance(entity, str) else None
        if door is not None and not args.get("area"):
            # What is asked about one door may not be known of another: a garage has no lock.
            kept = {name: value for name, value in args.items() if name != "expected"}
            return {**kept, "entity": f"{room} {door[1]}"}
        return {**args, "area": room}
    words = re.sub(r"^(?:(?:the|my|our|all)\s+)+", "", fragment.text, flags=re.IGNORECASE)
    if entity is None or _KIND_OF_DEVICE.fullmatch(words) is None or len(words.split()) > MAX_NAME_WORDS:
        return None
    kept = {name: value for name, value in args.items() if name not in ("area", "ids") or ROOM.search(words) is None}
    return {**kept, "entity": words}


# Sums.

_OPERATOR: Final = r"plus|minus|times|multiplied by|divided by|over|to the power of"
_TEENS: Final = {str(n + 10): str(n * 10) for n in range(3, 10)}
"""Numbers that sound alike: thirteen and thirty."""
_ALIKE: Final = _TEENS | {tens: teen for teen, tens in _TEENS.items()}


def _read_expression(fragment: Fragment, old: Any) -> str | None:
    """Returns the sum with another number in the place of the one that is of the same form."""
    if not isinstance(old, str):
        return None
    said = write_digits(fragment.text)
    before = write_digits(old)
    if match := re.fullmatch(rf"(?:an? )?({_NUMBER})\s*(?:%|percent|per cent)(?: tip)?", said, re.IGNORECASE):
        percent = re.compile(rf"{_NUMBER}(?=\s*(?:%|percent|per cent))", re.IGNORECASE)
        return percent.sub(match[1], before, count=1) if percent.search(before) else None
    if match := re.fullmatch(rf"(of|off|on|from|by|between|among|for|with)\s+\D?({_NUMBER})(?: \w+)?", said, re.I):
        after = re.compile(rf"\b({match[1]}\s+\D?){_NUMBER}", re.IGNORECASE)
        if after.search(before):
            return after.sub(rf"\g<1>{match[2]}", before, count=1)
        return _replace_number(before, match[2]) if match[1].lower() in ("for", "with", "on", "of") else None
    if fragment.corrects and (match := re.fullmatch(rf"({_OPERATOR})(?:\s+({_NUMBER}))?", said, re.IGNORECASE)):
        operation = re.compile(rf"\b(?:{_OPERATOR})(\s+{_NUMBER})(?!.*\b(?:{_OPERATOR})\b)", re.IGNORECASE)
        found = operation.search(before)
        if found is None:
            return None
        return f"{before[: found.start()]}{match[1]}{f' {match[2]}' if match[2] else found[1]}{before[found.end() :]}"
    if match := re.fullmatch(rf"\D?({_NUMBER})(?: (?:dollars|euros|pounds|people|ways))?", said, re.IGNORECASE):
        return _replace_number(before, match[1])
    return None


def _replace_number(before: str, number: str) -> str | None:
    """Replaces the number that sounds like this one, else the last one that is not a percentage."""
    found = list(re.finditer(rf"{_NUMBER}(?!\s*(?:%|percent|per cent))", before))
    alike = [each for each in re.finditer(_NUMBER, before) if _ALIKE.get(each[0]) == number]
    chosen = alike[0] if alike else found[-1] if found else None
    return None if chosen is None else f"{before[: chosen.start()]}{number}{before[chosen.end() :]}"


_READERS: Final[Mapping[Reader, Callable[[Fragment, Any], Any]]] = {
    Reader.PLACE: _read_place,
    Reader.DATE: _read_date,
    Reader.PERIOD: _read_period,
    Reader.WHEN: _read_when,
    Reader.TIME: _read_when,
    Reader.DURATION: _read_duration,
    Reader.NUMBER: _read_number,
    Reader.LEVEL: _read_number,
    Reader.QUANTITY: _read_quantity,
    Reader.UNIT: _read_unit,
    Reader.LIST: _read_list,
    Reader.ITEMS: _read_items,
    Reader.TEXT: _read_text,
    Reader.DICE: _read_dice,
    Reader.EXPRESSION: _read_expression,
}
