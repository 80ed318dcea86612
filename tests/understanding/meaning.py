"""Compares what was done with what was meant: by meaning, not by letter. The header of first/requests.yaml says
how."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from math import isclose
from typing import Any, Final

from antiphon.words.dates import parse_date
from antiphon.words.lists import list_name
from antiphon.words.numbers import write_digits
from antiphon.words.periods import parse_period
from antiphon.words.schedules import parse_duration
from antiphon.words.zones import find_place
from tests.understanding.world import NOW, Ran

_SMALL: Final = frozenset(
    ["a", "an", "the", "my", "some", "more", "please", "of", "in", "on", "to", "with", "s", "and"]
)
MORE_WORDS: Final = 3
"""How many words a message may have that are not expected: more of them are the rest of the request."""
_LEFT_OVER: Final = frozenset(["um", "uh", "er", "no", "sorry", "mean"])
"""What a message has only if hesitations and corrections were taken for a part of it."""
_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")


def misses(want: Mapping[str, Any], ran: Ran, reply: str) -> list[str]:
    """Returns the keys of `want` in which the call differs from it.

    In the setting, every request can be fulfilled, so a call that failed was not what was meant.
    """
    if not ran.succeeded:
        return ["the outcome"]
    return [key for key, value in want.items() if not _agrees(key, value, ran, reply)]


def matches(pattern: str, reply: str) -> bool:
    return re.search(pattern, reply, re.IGNORECASE) is not None


def has_number(expected: float, texts: Iterable[str]) -> bool:
    """Whether one of the texts has this number, in digits or in words. Its sign may be a word, so it does not count."""
    forms = [form for text in texts for form in (text, write_digits(text))]
    found = [float(each.replace(",", "")) for form in forms for each in _NUMBER.findall(form)]
    return any(isclose(abs(expected), each, rel_tol=5e-4, abs_tol=0.006) for each in found)


def words(text: object) -> frozenset[str]:
    """The words that count, in lower case and without the s of a plural."""
    found = re.findall(r"[a-z0-9@./+-]+", str(text).casefold().replace("'s", " ").replace("to do", "todo"))
    kept = [word.strip("./-") for word in found if word not in _SMALL]
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in kept)


def _agrees(key: str, value: Any, ran: Ran, reply: str) -> bool:
    if (compare := _COMPARED.get(key)) is not None:
        return compare(value, ran)
    match key:
        case "answer":
            return matches(value, reply)
        case "result":
            told = [str(ran.data[name]) for name in ("result", "days", "total") if name in ran.data]
            return has_number(value, (reply, *told))
        case "about" if ran.name == "list_reminders":
            return words(value) <= words(f"{ran.args.get('about', '')} {reply}")
        case "value" | "days" | "variants":
            given = ran.args.get(key)
            return isinstance(given, int | float) and isclose(given, value)
        case "action" | "about" | "kind" | "expected" | "style" | "reason" | "size" | "all" | "whole_series":
            return bool(ran.args.get(key) == value)
    return words(value) <= words(f"{ran.args.get(key, '')} {ran.preview}")


def _length(value: str, ran: Ran) -> bool:
    expected = parse_duration(value)
    assert expected is not None, value
    return bool(ran.data.get("remaining_s") == round(expected.total_seconds()))


def _due(value: str, ran: Ran) -> bool:
    return str(ran.data.get("due", "")).startswith(value)


def _cancelled(value: str, ran: Ran) -> bool:
    cancelled = ran.data.get("cancelled", ())
    return len(cancelled) == 1 and str(cancelled[0]["due"]).startswith(value)


def _named(value: str, ran: Ran) -> bool:
    """Whether everything that was cancelled is what the words name."""
    cancelled = ran.data.get("cancelled", ())
    return bool(cancelled) and all(words(value) <= words(f"{each['kind']} {each['message']}") for each in cancelled)


def _message(value: str, ran: Ran) -> bool:
    given = words(ran.data.get("message", ""))
    more = given - words(value)
    return words(value) <= given and len(more) <= MORE_WORDS and _LEFT_OVER.isdisjoint(more)


def _repeat(value: str, ran: Ran) -> bool:
    return words(value) <= words(ran.data.get("repeat", ""))


def _device(value: str, ran: Ran) -> bool:
    given = [ran.args.get("entity", ""), ran.args.get("area", "")]
    given += [f"{each['name']} {each['area']}" for each in ran.data.get("devices", ()) if isinstance(each, Mapping)]
    return words(value) <= words(" ".join([*given, ran.preview]))


def _items(value: list[str], ran: Ran) -> bool:
    """By what the tool has understood. What is not on a list cannot be removed from it, but may be meant."""
    data = ran.data
    found = [*data.get("added", ()), *data.get("duplicates", ()), *data.get("removed", ()), *data.get("missing", ())]
    return sorted(map(_plain, found or [ran.args.get("item", "")])) == sorted(map(_plain, value))


def _options(value: list[str], ran: Ran) -> bool:
    return sorted(map(_plain, ran.data.get("options", ()))) == sorted(map(_plain, value))


def _plain(item: str) -> list[str]:
    return sorted(words(item))


def _list(value: str, ran: Ran) -> bool:
    data = ran.data
    shown = [each["name"] for each in data.get("lists", ())]
    name = data.get("list") or (shown[0] if len(shown) == 1 else None) or ran.args.get("list", "")
    return bool(name) and list_name(name) == list_name(value)


def _zone(value: str, ran: Ran) -> bool:
    given = ran.args.get("timezone", "")
    meant, found = find_place(value), find_place(given) if given else None
    return words(value) == words(given) or (meant is not None and found is not None and meant.zone == found.zone)


def _location(value: str, ran: Ran) -> bool:
    # What follows a comma is the region or the country.
    return words(value) == words(ran.args.get("location", "").partition(",")[0])


def _dice(value: str, ran: Ran) -> bool:
    return str(ran.data.get("dice", "")).removeprefix("1") == value


def _absent(value: list[str], ran: Ran) -> bool:
    return not any(ran.call.args.get(name) for name in value)


def _day(key: str) -> Callable[[str, Ran], bool]:
    """Compares a day, or a moment if the time is given, with what the tool has understood, or with the words."""

    def agrees(value: str, ran: Ran) -> bool:
        return any(_starts(each, value) for each in _told_days(ran)) or _starts(ran.args.get(key), value)

    return agrees


def _told_days(ran: Ran) -> list[object]:
    """Days in the result that tell how the words were understood."""
    data = ran.data
    told: list[object] = []
    if ran.name == "get_day_of_week":
        told = [data.get("date")]
    elif ran.name == "time_until":
        told = [data.get("target")]
    elif ran.name == "calendar_list_events":
        told = [data.get("start")]
    elif ran.name == "calendar_get_availability":
        told = [data.get("date_range", {}).get("start")]
    elif ran.name in ("get_weather", "get_forecast"):
        told = [each["date"] for each in data.get("days", ())]
    return told


def _starts(said: object, value: str) -> bool:
    """Whether the day or the moment that the words mean begins with the expected one, in ISO 8601."""
    if not isinstance(said, str) or not said:
        return False
    if said.startswith(value):
        return True
    period = parse_period(said, NOW)
    moment: date | datetime | None = parse_date(said, NOW.date()) if period is None else period.start
    return moment is not None and moment.isoformat().startswith(value)


_COMPARED: Final[Mapping[str, Callable[[Any, Ran], bool]]] = {
    "duration": _length,
    "due": _due,
    "cancelled": _cancelled,
    "reminder": _named,
    "repeat": _repeat,
    "message": _message,
    "label": _message,
    "entity": _device,
    "area": _device,
    "item": _items,
    "options": _options,
    "list": _list,
    "timezone": _zone,
    "location": _location,
    "dice": _dice,
    "absent": _absent,
    **{
        key: _day(key)
        for key in ("day", "date", "range", "from_date", "target_date", "start_date", "end_date", "start_time")
    },
}
