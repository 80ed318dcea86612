"""Lengths of time, as they are heard: "an hour and ten minutes", "two weeks"."""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

_SECONDS: Final = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600}
_DAYS: Final = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS: Final = {"month": 1, "year": 12}

_TERM: Final = (
    r"(?:\d{1,7}(?:\.\d{1,3})?|an?) "
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?|months?|years?)"
)
SPAN: Final = rf"{_TERM}(?:(?: and)? {_TERM})*"
"""A pattern for lower-case text with its numbers in digits, after `spell_out_halves`."""

_HALVES: Final = (
    (re.compile(r"\ba couple(?: of)?\b"), "2"),
    (re.compile(r"\b(?:a )?half (?:an |of an )?hour\b"), "30 minutes"),
    (re.compile(r"\b(?:a )?quarter (?:of )?(?:an )?hour\b"), "15 minutes"),
    (re.compile(r"\b3 quarters of an hour\b"), "45 minutes"),
    (re.compile(r"\bhalf a day\b"), "12 hours"),
    (re.compile(r"\bhalf a year\b"), "6 months"),
    (re.compile(r"\b(\d+|an) (?:hours?|hrs?) and a half\b"), r"\1 hours and 30 minutes"),
    (re.compile(r"\b(\d+) and a half (?:hours|hrs)\b"), r"\1 hours and 30 minutes"),
    (re.compile(r"\b(\d+|a) (?:minutes?|mins?) and a half\b"), r"\1 minutes and 30 seconds"),
    (re.compile(r"\b(\d+) and a half minutes\b"), r"\1 minutes and 30 seconds"),
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
        """The day that many months and days later; the 31st becomes a shorter month's last day."""
        months = day.year * 12 + day.month - 1 + self.months
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(day.day, last)) + timedelta(days=self.days)

    def after(self, moment: datetime) -> datetime:
        """The aware moment that much later, in the same zone."""
        moved = datetime.combine(self.after_day(moment.date()), moment.timetz())
        return (moved.astimezone(UTC) + timedelta(seconds=self.seconds)).astimezone(moment.tzinfo)


def spell_out_halves(text: str) -> str:
    """ "half an hour" is "30 minutes": one way to say a length is enough for the patterns."""
    for pattern, plain in _HALVES:
        text = pattern.sub(plain, text)
    return text


def hear_span(text: str) -> Span | None:
    """A text that `SPAN` matches, as a value; None for parts of a day or a month, such as 1.5 months."""
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
