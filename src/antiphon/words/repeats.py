"""How something repeats: "every weekday at nine", "on mondays and thursdays at noon", "every half hour"."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

from msgspec import Struct

from antiphon.words.dates import localize, normalize
from antiphon.words.days import WEEKDAYS
from antiphon.words.speech import speak_duration, speak_time
from antiphon.words.times import SPAN, Part, TimeOfDay, parse_span, parse_time

EVERY_DAY: Final = tuple(range(7))
WORKDAYS: Final = (0, 1, 2, 3, 4)
WEEKEND: Final = (5, 6)
SHORTEST: Final = timedelta(minutes=1)

_DEFAULT: Final = TimeOfDay(time(9), exact=True)
_DAY: Final = rf"(?:{'|'.join(WEEKDAYS)})s?"
_DAYS: Final = rf"{_DAY}(?:(?: and| or|) {_DAY})*"
_EVERY: Final = r"(?:every(?: single)?|each)"
_PATTERN: Final = re.compile(
    r"\b(?:on )?(?:"
    rf"{_EVERY} (?P<interval>half hour|quarter hour|hour|minute|{SPAN})"
    r"|(?P<hourly>hourly)"
    rf"|(?:{_EVERY} week )?(?:on )?(?:{_EVERY} )?(?P<first>{_DAY}) (?:to|through|till|until) (?P<last>{_DAY})"
    rf"|{_EVERY} week (?:on )?(?P<weekly>{_DAYS})"
    rf"|{_EVERY} (?P<days>{_DAYS})"
    rf"|(?P<plural>(?:{_DAY}(?: and)? )*(?:{'|'.join(WEEKDAYS)})s)"
    rf"|(?:{_EVERY} )?(?:week ?days?|work ?days?|working days?)(?P<workdays>)"
    rf"|{_EVERY} weekend|weekends(?P<weekend>)"
    rf"|{_EVERY} (?P<part>morning|afternoon|evening|night)"
    rf"|{_EVERY} day|daily|everyday"
    r")\b"
)
_UNSUPPORTED: Final = re.compile(
    rf"\b(?:{_EVERY} (?:(?:other|second|2nd|third|3rd|1st|first|last)|(?:\d+ )?(?:weeks?|months?|years?|quarters?))\b"
    r"|monthly|yearly|annually|weekly|fortnightly|biweekly)"
)


class UnsupportedRepeat(ValueError):
    """It repeats in a way that is not supported, such as every month."""


class Repeat(Struct, frozen=True, omit_defaults=True):
    """On days of the week at a local time, or at an interval."""

    days: tuple[int, ...] = ()
    """Weekdays from 0, which is Monday. Without any, it repeats at the interval."""
    at: time = time()
    interval_s: int = 0

    def next_after(self, now: datetime, last: datetime) -> datetime:
        """Returns the first time after `now`, which is in the zone in which it repeats. `last` was one of its times.

        The local time stays the same over a change of daylight saving; one that is skipped moves forward.
        """
        if not self.days:
            passed_s = (now.astimezone(UTC) - last.astimezone(UTC)).total_seconds()
            count = max(0, int(passed_s // self.interval_s)) + 1
            return (last.astimezone(UTC) + timedelta(seconds=count * self.interval_s)).astimezone(now.tzinfo)
        days = (now.date() + timedelta(days=offset) for offset in range(8))
        moments = (localize(datetime.combine(day, self.at), now) for day in days if day.weekday() in self.days)
        return next(moment for moment in moments if moment > now)

    def speak(self) -> str:
        if not self.days:
            words = speak_duration(timedelta(seconds=self.interval_s))
            return f"every {words.removeprefix('1 ')}"
        return f"every {_speak_days(self.days)} at {speak_time(self.at)}"


def _speak_days(days: Sequence[int]) -> str:
    named = {EVERY_DAY: "day", WORKDAYS: "weekday"}.get(tuple(days))
    if named is not None:
        return named
    *before, last = [WEEKDAYS[day].capitalize() for day in days]
    return f"{', '.join(before)} and {last}" if before else last


def parse_repeat(text: str, *, in_morning: bool = False) -> Repeat | None:
    """Returns None if the text does not say that something repeats, or has words that are not understood.

    Raises UnsupportedRepeat, and ValueError for a text that is longer than any time.
    """
    heard = normalize(text)
    if _UNSUPPORTED.search(heard) is not None and "every week " not in heard:
        raise UnsupportedRepeat(text)
    found = _PATTERN.search(heard)
    if found is None:
        return None
    rest = " ".join(f"{heard[: found.start()]} {heard[found.end() :]}".split())
    if interval := found["interval"] or found["hourly"]:
        return None if rest else Repeat(interval_s=_interval_s(interval))
    clock, part = _parse_clock(rest, found["part"])
    if clock is None:
        return None
    clock = clock.in_morning if in_morning else clock
    if part is not None and clock.is_after_midnight:
        raise UnsupportedRepeat(text)
    return Repeat(_days_of(found), clock.by_day)


def _parse_clock(rest: str, part_said: str | None) -> tuple[TimeOfDay | None, Part | None]:
    within = re.search(r"\b(?:in the |at )?(morning|afternoon|evening|night)\b", rest)
    if within is not None:
        part_said = within[1]
        rest = " ".join(f"{rest[: within.start()]} {rest[within.end() :]}".split())
    part = None if part_said is None else Part(part_said)
    if not rest:
        return (_DEFAULT if part is None else parse_time("", part)), part
    return parse_time(rest, part) or parse_time(f"at {rest}", part), part


def _days_of(found: re.Match[str]) -> tuple[int, ...]:
    if found["first"] is not None:
        first, last = _index(found["first"]), _index(found["last"])
        count = (last - first) % 7 + 1
        return tuple(sorted((first + offset) % 7 for offset in range(count)))
    if said := found["weekly"] or found["days"] or found["plural"]:
        return tuple(sorted({_index(word) for word in said.split() if word not in ("and", "or")}))
    if found["workdays"] is not None:
        return WORKDAYS
    return WEEKEND if "weekend" in found[0] else EVERY_DAY


def _index(word: str) -> int:
    return WEEKDAYS.index(word.removesuffix("s"))


def _interval_s(said: str) -> int:
    fixed = {"hourly": 3600, "hour": 3600, "half hour": 1800, "quarter hour": 900, "minute": 60}.get(said)
    if fixed is not None:
        return fixed
    span = parse_span(said)
    if span is None or span.months:
        raise UnsupportedRepeat(said)
    seconds = span.days * 86_400 + span.seconds
    if seconds < SHORTEST.total_seconds() or span.days:
        # Days of 24 hours would drift against the clock.
        raise UnsupportedRepeat(said)
    return seconds
