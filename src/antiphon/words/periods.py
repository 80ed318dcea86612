"""Parses stretches of time as people say them: "this week", "tomorrow afternoon", "the next three days"."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from antiphon.words.dates import MAX_TEXT_CHARS, parse_date, parse_when
from antiphon.words.days import MONTHS
from antiphon.words.numbers import to_digits

WEEK: Final = 7

_PARTS: Final = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 23), "night": (18, 24)}
"""The hours of each part of a day, in which people make appointments."""

_PUNCTUATION: Final = re.compile(r"['’,;?!]|\.$")
_AROUND: Final = re.compile(r"^(?:(?:on|in|for|during|within|over) )+")
_PART: Final = re.compile(
    r"(?:(?P<this>this) |(?P<day>.+?) (?:in the |at )?)(?P<part>morning|afternoon|evening|night)|(?P<tonight>tonight)"
)
_NEXT_DAYS: Final = re.compile(
    r"(?:the )?(?:next|coming|following) (?P<count>\d{1,3}|few|couple of) (?P<unit>day|week)s?"
)
_PERIOD: Final = re.compile(
    r"(?:(?P<which>this|next|the coming|coming|the) )?(?P<rest>rest of (?:the|this) )?(?P<unit>week|weekend|month)"
)
_MONTH: Final = re.compile(rf"(?:next |this )?(?:{'|'.join(MONTHS)})(?: \d{{4}})?")
_BETWEEN: Final = re.compile(r"(?:from |between )?(?P<start>.+?) (?:to|until|till|through|and) (?P<end>.+)")
_FEW: Final = {"few": 3, "couple of": 2}


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time, without its end. Both are aware, in the zone of the person who spoke."""

    start: datetime
    end: datetime

    @property
    def is_moment(self) -> bool:
        return self.start == self.end


def parse_period(text: str, now: datetime) -> Period | None:
    """Returns the period that the text names, or the moment; None if it names neither. `now` sets the zone.

    A day lasts from midnight to midnight. "This week" and "this month" begin today.
    """
    if len(text) > MAX_TEXT_CHARS:
        return None
    written = parse_when(text, now)
    if isinstance(written, datetime) and re.match(r"\d{4}-\d\d-\d\d", text.strip()):
        return Period(written, written)
    words = _AROUND.sub("", " ".join(to_digits(_PUNCTUATION.sub("", text.casefold())).split()))
    try:
        return _relative(words, now) or _part_of_day(words, now) or _day_or_moment(text, now) or _between(words, now)
    except (ValueError, OverflowError):
        return None


def _relative(words: str, now: datetime) -> Period | None:
    today = now.date()
    if match := _NEXT_DAYS.fullmatch(words):
        count = _FEW.get(match["count"]) or int(match["count"])
        return _days(today, today + timedelta(days=count * (WEEK if match["unit"] == "week" else 1)), now)
    if _MONTH.fullmatch(words) and (first := parse_date(words, today)) is not None:
        start = today if (first.year, first.month) == (today.year, today.month) else first
        return _days(start, _next_month(first), now)
    match = _PERIOD.fullmatch(words)
    if match is None or (match["unit"] != "weekend" and match["which"] is None and match["rest"] is None):
        return None
    monday = today - timedelta(days=today.weekday())
    is_next = match["which"] in ("next", "coming", "the coming")
    if match["unit"] == "month":
        first = _next_month(today) if is_next else today
        return _days(first, _next_month(first), now)
    if match["unit"] == "week":
        start = monday + timedelta(days=WEEK) if is_next else today
        return _days(start, monday + timedelta(days=WEEK * (2 if is_next else 1)), now)
    saturday = monday + timedelta(days=5 + (WEEK if match["which"] == "next" else 0))
    return _days(max(saturday, today), saturday + timedelta(days=2), now)


def _part_of_day(words: str, now: datetime) -> Period | None:
    match = _PART.fullmatch(words)
    if match is None:
        return None
    is_today = match["tonight"] or match["this"]
    day = now.date() if is_today else parse_date(match["day"], now.date())
    if day is None:
        return None
    start, end = _PARTS["night" if match["tonight"] else match["part"]]
    midnight = datetime.combine(day, time())
    return _period(midnight + timedelta(hours=start), midnight + timedelta(hours=end), now)


def _day_or_moment(text: str, now: datetime) -> Period | None:
    when = parse_when(_AROUND.sub("", text.strip()), now)
    if isinstance(when, datetime):
        return Period(when, when)
    return None if when is None else _days(when, when + timedelta(days=1), now)


def _between(words: str, now: datetime) -> Period | None:
    match = _BETWEEN.fullmatch(words)
    if match is None:
        return None
    start, end = parse_period(match["start"], now), parse_period(match["end"], now)
    if start is not None and end is not None and end.end <= start.start:
        # "from friday to monday", said on a Sunday: the Monday after that Friday.
        end = parse_period(match["end"], start.start)
    return Period(start.start, end.end) if start and end and start.start < end.end else None


def _days(first: date, after: date, now: datetime) -> Period:
    return _period(datetime.combine(first, time()), datetime.combine(after, time()), now)


def _period(start: datetime, end: datetime, now: datetime) -> Period:
    zone = now.tzinfo
    # Through UTC, so that a midnight that the clocks skip becomes a real time.
    return Period(*(each.replace(tzinfo=zone).astimezone(UTC).astimezone(zone) for each in (start, end)))


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
