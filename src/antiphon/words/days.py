"""Parses days as people say them: "next friday", "the fourth of july", "christmas eve", "12/25/2026".

Recurring days (a weekday, a day of a month, a holiday) mean their next occurrence, including today.
"""

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from antiphon.words.holidays import find_holiday, next_holiday

MONTHS: Final = tuple(name.lower() for name in calendar.month_name)[1:]
WEEKDAYS: Final = tuple(name.lower() for name in calendar.day_name)

_MONTHS_TO_SEARCH: Final = 21
"""The rarest is a given weekday on a 31st: at most 20 months, over four centuries."""

_DAY_WORDS: Final = {"now": 0, "today": 0, "tomorrow": 1, "yesterday": -1}
_FULL_MONTH: Final = "|".join(MONTHS)
_MONTH: Final = rf"(?P<month>{_FULL_MONTH}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_WEEKDAY: Final = "|".join(WEEKDAYS)
# Short weekdays only before a date: "sun" and "sat" alone are words of their own.
_BEFORE: Final = rf"(?:(?P<weekday>{_WEEKDAY}|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun) )?(?:the )?"
_YEAR: Final = r"(?P<year>\d{4}|(?:19|20|21) \d\d|(?:this|next|last) year)"
_NUMBER: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)"
_DAY: Final = rf"{_NUMBER}?"


class NoSuchDay(ValueError):
    """A day was named, but the calendar has none like it: February 30th, or a Friday that is a Thursday."""


def parse_day(text: str, today: date) -> date | None:
    """Parses lower-case text without apostrophes and with numbers as digits. None if it names no day.

    Raises NoSuchDay, or the calendar's own ValueError and OverflowError.
    """
    for pattern, day_of in _RULES:
        if match := pattern.fullmatch(text):
            return day_of(match, today)
    return None


def _day_word(match: re.Match[str], today: date) -> date:
    return today + timedelta(days=_DAY_WORDS[match[0]])


def _weekday(match: re.Match[str], today: date) -> date:
    weekday = WEEKDAYS.index(match["weekday"])
    which = match["which"]
    if which in ("last", "past"):
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    if which == "next":
        return _in_next_week(weekday, today)
    return today + timedelta(days=(weekday - today.weekday()) % 7)


def _weekday_next_week(match: re.Match[str], today: date) -> date:
    return _in_next_week(WEEKDAYS.index(match["weekday"] or match["late_weekday"]), today)


def _in_next_week(weekday: int, today: date) -> date:
    """Returns the weekday in the week from next Monday on: on a Thursday, "next friday" is not tomorrow."""
    return today + timedelta(days=7 - today.weekday() + weekday)


def _weekend(match: re.Match[str], today: date) -> date:
    saturday = 5
    if match["which"] == "next":
        return _in_next_week(saturday, today)
    return today + timedelta(days=max(saturday - today.weekday(), 0))


def _next_period(match: re.Match[str], today: date) -> date:
    if match["period"] == "week":
        return today + timedelta(days=7)
    if match["period"] == "year":
        return date(today.year + 1, 1, 1)
    return _month_after(today)


def _end_of_period(match: re.Match[str], today: date) -> date:
    if match["period"] == "week":
        return today + timedelta(days=6 - today.weekday())
    if match["period"] == "year":
        return date(today.year, 12, 31)
    return _month_after(today) - timedelta(days=1)


def _month_after(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _day_of_month(match: re.Match[str], today: date) -> date:
    month, number = _month_number(match["month"]), int(match["day"])
    day = _in_year(match["year"], today, lambda year: date(year, month, number))
    if match["weekday"] and not WEEKDAYS[day.weekday()].startswith(match["weekday"][:3]):
        raise NoSuchDay(match[0])  # The weekday or the date was misheard.
    return day


def _month_alone(match: re.Match[str], today: date) -> date:
    month = _month_number(match["month"])
    return _in_year(match["year"], today, lambda year: date(year, month, 1))


def _in_year(said: str | None, today: date, day_of: Callable[[int], date]) -> date:
    """Returns the day in the given year, else its next occurrence."""
    # Eight years is the longest wait for a leap day (1896 to 1904).
    years = range(today.year, today.year + 9) if said is None else (_year_number(said, today),)
    for year in years:
        try:
            day = day_of(year)
        except ValueError:
            continue
        if said is not None or day >= today:
            return day
    raise NoSuchDay(f"no such day in {years}")


def _day_number(match: re.Match[str], today: date) -> date:
    """Returns "the 15th" of this month or, if that is over or has no such day, of a later one."""
    number = int(match["day"])
    if match["when"]:
        return (_month_after(today) if match["when"] == "next" else today).replace(day=number)
    weekday = WEEKDAYS.index(match["weekday"]) if match["weekday"] else None
    first = today.replace(day=1)
    for _ in range(_MONTHS_TO_SEARCH):
        if 1 <= number <= calendar.monthrange(first.year, first.month)[1]:
            day = first.replace(day=number)
            if day >= today and weekday in (None, day.weekday()):
                return day
        first = _month_after(first)
    raise NoSuchDay(match[0])


def _year_alone(match: re.Match[str], today: date) -> date:
    return date(_year_number(match["year"], today), 1, 1)


def _numeric(match: re.Match[str], today: date) -> date:
    month, day = int(match["month"]), int(match["day"])
    if match["slash"] and month > 12:
        month, day = day, month  # 25/12/2026 can only be the British order.
    year = f"20{match['year']}" if len(match["year"] or "") == 2 else match["year"]
    return _in_year(year, today, lambda year: date(year, month, day))


def _holiday(match: re.Match[str], today: date) -> date | None:
    day_of = find_holiday(match["name"])
    if day_of is None:
        return None
    if match["year"]:
        return day_of(_year_number(match["year"], today))
    if match["which"] == "last":
        this_year = day_of(today.year)
        return this_year if this_year < today else day_of(today.year - 1)
    return next_holiday(day_of, today)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name[:3]))


def _year_number(said: str, today: date) -> int:
    relative = {"this year": 0, "next year": 1, "last year": -1}.get(said)
    return today.year + relative if relative is not None else int(said.replace(" ", ""))


_RULES: Final = tuple(
    (re.compile(pattern), day_of)
    for pattern, day_of in (
        ("|".join(_DAY_WORDS), _day_word),
        (rf"(?:(?P<which>this|this coming|coming|next|last|past) )?(?P<weekday>{_WEEKDAY})", _weekday),
        (
            rf"(?P<weekday>{_WEEKDAY}) (?:of )?next week|next week (?:on )?(?P<late_weekday>{_WEEKDAY})",
            _weekday_next_week,
        ),
        (r"(?:the )?(?:(?P<which>this|next) )?weekend", _weekend),
        (r"next (?P<period>week|month|year)", _next_period),
        (r"(?:the )?end of (?:the |this )?(?P<period>week|month|year)", _end_of_period),
        (rf"{_BEFORE}{_MONTH} (?:the )?{_DAY}(?: (?:of )?{_YEAR})?", _day_of_month),
        (rf"{_BEFORE}{_DAY} (?:of )?{_MONTH}(?: (?:of )?{_YEAR})?", _day_of_month),
        (rf"(?:in |this |next )?(?P<month>{_FULL_MONTH})(?: (?:of )?{_YEAR})?", _month_alone),
        (rf"(?:in )?{_MONTH} (?:of )?{_YEAR}", _month_alone),
        (rf"(?:(?P<weekday>{_WEEKDAY}) (?:the )?|the ){_NUMBER}(?: of (?P<when>this|next) month)?", _day_number),
        (r"(?:in )?(?P<year>(?:19|20|21) ?\d\d)", _year_alone),
        (r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?P<slash>)", _numeric),
        (r"(?P<month>\d{1,2})(?P<slash>/)(?P<day>\d{1,2})(?:/(?P<year>\d{4}|\d\d))?", _numeric),
        (r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?P<slash>)", _numeric),
        (rf"(?:(?P<which>this|next|last|the) )?(?P<name>[a-z ]+?)(?: (?:in |of )?{_YEAR})?", _holiday),
    )
)
