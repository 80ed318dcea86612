"""Times of day and lengths of time, as people say them: "half past six", "ten in the morning", "two weeks"."""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final


class Part(StrEnum):
    """A part of the day. It makes an hour unambiguous, and has a default hour of its own."""

    MORNING = "morning"
    AFTERNOON = "afternoon"
    EVENING = "evening"
    NIGHT = "night"


MINUTES_A_DAY: Final = 24 * 60

_DEFAULT_HOUR: Final = {Part.MORNING: 9, Part.AFTERNOON: 15, Part.EVENING: 18, Part.NIGHT: 20}
SMALL_HOURS: Final = 5
"""Hours before this one belong to the night before: "tonight at one" is tomorrow's date."""

_FIRST_DAYTIME_HOUR: Final = 7
"""Without AM or PM, "tomorrow at six" is in the evening and "tomorrow at seven" in the morning."""

_FIRST_ALARM_HOUR: Final = 4

_MERIDIEM: Final = r"(?: ?(?P<meridiem>am|pm))?"
_PATTERNS: Final = (
    re.compile(rf"(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::(?P<second>\d{{2}}))?{_MERIDIEM}"),
    re.compile(rf"(?P<hour>\d{{1,2}}) (?P<minute>\d{{2}}){_MERIDIEM}"),
    re.compile(rf"(?P<hour>\d{{1,2}})(?P<sure> oclock| ?(?=[ap]m))?{_MERIDIEM}"),
    re.compile(
        r"(?P<offset>half|(?:a )?quarter|\d{1,2})(?: minutes?)? (?P<way>past|after|to|till|before) "
        rf"(?P<hour>\d{{1,2}}|noon|midnight)(?: oclock)?{_MERIDIEM}"
    ),
)


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day as it was said. Unless it is `exact`, it may be AM or PM."""

    at: time
    exact: bool
    part: Part | None = None

    @property
    def readings(self) -> tuple[time, ...]:
        """The possible times, earliest first."""
        if self.exact:
            return (self.at,)
        hour = self.at.hour % 12
        return self.at.replace(hour=hour), self.at.replace(hour=hour + 12)

    @property
    def by_day(self) -> time:
        """The reading for days other than today."""
        return self.readings[0 if self.at.hour % 12 >= _FIRST_DAYTIME_HOUR else -1]

    @property
    def in_morning(self) -> "TimeOfDay":
        """The time as people mean it for an alarm: from four to eleven, an hour without AM or PM is in the morning."""
        if self.exact or self.at.hour % 12 < _FIRST_ALARM_HOUR:
            return self
        return TimeOfDay(self.readings[0], True, self.part)

    @property
    def is_after_midnight(self) -> bool:
        return self.part is Part.NIGHT and self.at.hour < SMALL_HOURS


def parse_time(text: str, part: Part | None = None) -> TimeOfDay | None:
    """Parses lower-case text with numbers as digits. A bare number needs "at" or a part of the day."""
    bare = re.sub(r"^(?:at|by|around|about) ", "", text)
    if not bare:
        return TimeOfDay(time(_DEFAULT_HOUR[part]), True, part) if part else None
    if bare in ("noon", "midday", "12 noon"):
        return TimeOfDay(time(12), True, part)
    if bare in ("midnight", "12 midnight"):
        return TimeOfDay(time(0), True, part)
    for pattern in _PATTERNS:
        if match := pattern.fullmatch(bare):
            said = match.groupdict()
            if "sure" in said and said["sure"] is None and bare == text and part is None:
                return None
            return _time_of(said, part)
    return None


def _time_of(said: dict[str, str | None], part: Part | None) -> TimeOfDay | None:
    hour_said = said["hour"] or ""
    hour = {"noon": 12, "midnight": 24}.get(hour_said) or int(hour_said)
    minute, second = int(said.get("minute") or 0), int(said.get("second") or 0)
    meridiem = said["meridiem"]
    if (hour_said.isdigit() and hour > 23) or minute > 59 or second > 59 or (meridiem and not 1 <= hour <= 12):
        return None
    # Recognisers write "six thirty" as "6:30", so only a leading zero or a late hour implies a 24-hour clock.
    exact = meridiem is not None or not 1 <= hour <= 12 or hour_said.startswith("0") or not hour_said.isdigit()
    if meridiem:
        hour = hour % 12 + (12 if meridiem == "pm" else 0)
    elif part and not exact:
        hour, exact = _hour_in(part, hour), True
    if offset := said.get("offset"):
        minutes = {"half": 30, "quarter": 15, "a quarter": 15}.get(offset) or int(offset)
        minute = minutes if said["way"] in ("past", "after") else -minutes
    hour, minute = divmod((hour * 60 + minute) % MINUTES_A_DAY, 60)
    return TimeOfDay(time(hour, minute, second), exact, part)


def _hour_in(part: Part, hour: int) -> int:
    """Returns the 24-hour form: twelve in the morning or at night is midnight; two at night is two hours after it."""
    is_early = part is Part.MORNING or (part is Part.NIGHT and hour % 12 < SMALL_HOURS)
    return hour % 12 if is_early else hour % 12 + 12


_SECONDS: Final = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600}
_DAYS: Final = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS: Final = {"month": 1, "year": 12}

_TERM: Final = (
    r"(?:\d{1,7}(?:\.\d{1,3})?|an?) "
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?|months?|years?)"
)
SPAN: Final = rf"{_TERM}(?:(?: and)? {_TERM})*"
"""A pattern for lower-case text with its numbers in digits, after `expand_halves`."""

_HALVES: Final = (
    (re.compile(r"\ba couple(?: of)?\b"), "2"),
    (re.compile(r"(?<!and )\b(?:a )?(?<!and a )half (?:an |of an )?hour\b"), "30 minutes"),
    (re.compile(r"(?<!and )\b(?:a )?(?<!and a )half (?:a )?minute\b"), "30 seconds"),
    (re.compile(r"\b(?:a )?quarter (?:of )?(?:an )?hour\b"), "15 minutes"),
    (re.compile(r"\b3 quarters of an hour\b"), "45 minutes"),
    (re.compile(r"\bhalf a day\b"), "12 hours"),
    (re.compile(r"\bhalf a year\b"), "6 months"),
    (re.compile(r"\b(\d+|an) (?:hours?|hrs?) and a half\b"), r"\1 hours and 30 minutes"),
    (re.compile(r"\b(\d+) and a half (?:hours?|hrs?)\b"), r"\1 hours and 30 minutes"),
    (re.compile(r"\b(\d+|an) (?:hours?|hrs?) and a quarter\b"), r"\1 hours and 15 minutes"),
    (re.compile(r"\b(\d+|a) (?:minutes?|mins?) and a half\b"), r"\1 minutes and 30 seconds"),
    (re.compile(r"\b(\d+) and a half (?:minutes?|mins?)\b"), r"\1 minutes and 30 seconds"),
    (re.compile(r"\b(\d+|a) years? and a half\b"), r"\1 years and 6 months"),
    (re.compile(r"\b(\d+) and a half years\b"), r"\1 years and 6 months"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """Months and days move the calendar, seconds move the clock: in a night of DST the two are not the same."""

    months: int = 0
    days: int = 0
    seconds: int = 0

    def __neg__(self) -> "Span":
        return Span(-self.months, -self.days, -self.seconds)

    def after_day(self, day: date) -> date:
        """Returns the day that many months and days later; the 31st becomes a shorter month's last day."""
        months = day.year * 12 + day.month - 1 + self.months
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(day.day, last)) + timedelta(days=self.days)

    def after(self, moment: datetime) -> datetime:
        """Returns the aware moment that much later, in the same zone."""
        moved = datetime.combine(self.after_day(moment.date()), moment.timetz())
        return (moved.astimezone(UTC) + timedelta(seconds=self.seconds)).astimezone(moment.tzinfo)


def expand_halves(text: str) -> str:
    """Rewrites "half an hour" as "30 minutes", so that the patterns need only one form."""
    for pattern, plain in _HALVES:
        text = pattern.sub(plain, text)
    return text


def parse_span(text: str) -> Span | None:
    """Parses text that `SPAN` matches; None for fractions of a day or month, such as 1.5 months."""
    months = days = seconds = 0
    for count, unit in re.findall(r"(\d+(?:\.\d+)?|an?) ([a-z]+)", text.replace("and ", "")):
        amount = 1.0 if count in ("a", "an") else float(count)
        unit = unit.removesuffix("s")
        if unit in _SECONDS:
            seconds += round(amount * _SECONDS[unit])
        elif not amount.is_integer():
            return None
        elif unit in _DAYS:
            days += int(amount) * _DAYS[unit]
        else:
            months += int(amount) * _MONTHS[unit]
    return Span(months, days, seconds)
