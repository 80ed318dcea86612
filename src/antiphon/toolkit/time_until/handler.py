"""Tells how long it is until a day or a moment, how long ago it was, or how long it is between two."""

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ToolResult, ok
from antiphon.words.dates import parse_last, parse_when
from antiphon.words.speech import speak_date, speak_duration, speak_time

When = datetime | date


class Unit(StrEnum):
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"
    MONTHS = "months"
    YEARS = "years"


_DAYS_UNTIL_YEARS: Final = 2 * 365
"""From how many days on a length is said in years, if no unit was asked for."""
_SECONDS: Final = {Unit.SECONDS: 1, Unit.MINUTES: 60, Unit.HOURS: 3_600}


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone)
    unit = Unit(args["unit"]) if "unit" in args else None
    start: When = now
    if "from_date" in args:
        start = _known(parse_when(args["from_date"], now), args["from_date"])
        target = _known(parse_when(args["target_date"], now), args["target_date"])
        if _moment(target, now) < _moment(start, now):
            # "From December 25th to January 1st" is a week: the first of January that comes after it.
            target = _known(parse_when(args["target_date"], _moment(start, now)), args["target_date"])
    else:
        parse = parse_last if args.get("since") else parse_when
        target = _known(parse(args["target_date"], now), args["target_date"])
    has_time = isinstance(target, datetime)
    begin, moment = _moment(start, now), _moment(target, now)
    # Not `moment - begin`: Python subtracts two times of one zone by wall clock, without the hour of a DST change.
    left = moment - begin.astimezone(UTC)
    days = (moment.date() - begin.date()).days
    data = {
        "target": moment.isoformat(timespec="seconds") if has_time else moment.date().isoformat(),
        "has_time": has_time,
        "days": days,
        "seconds": round(left.total_seconds()),
        "past": left < timedelta(0) if has_time else days < 0,
    }
    if "from_date" in args:
        both = has_time and isinstance(start, datetime)
        ends = [_name(each, now) for each in (start, target)]
        return ok(data, spoken=f"It's {_length(begin, moment, left, unit, has_time=both)} from {ends[0]} to {ends[1]}.")
    length = _length(begin, moment, left, unit, has_time=has_time or unit in _SECONDS)
    if has_time:
        return ok(data, spoken=_speak_moment(moment, left, length, now))
    return ok(data, spoken=_speak_day(moment.date(), now.date(), length, is_exact=unit in _SECONDS))


def _known(when: When | None, words: str) -> When:
    if when is None:
        raise ToolError(
            ErrorType.VALIDATION,
            f"I don't know when {words} is.",
            suggestion='Name a day or a time: "Christmas", "next Friday", "tomorrow at 6 pm" or "2026-03-04T18:00".',
        )
    return when


def _moment(when: When, now: datetime) -> datetime:
    return when if isinstance(when, datetime) else datetime.combine(when, time(), now.tzinfo)


def _length(begin: datetime, end: datetime, left: timedelta, unit: Unit | None, *, has_time: bool) -> str:
    """Returns the length in the unit, with what is left over in the next smaller one."""
    if left < timedelta(0):
        begin, end = end, begin
    seconds = abs(round(left.total_seconds()))
    days = (end.date() - begin.date()).days
    if unit is None and days >= _DAYS_UNTIL_YEARS and not has_time:
        unit = Unit.YEARS
    match unit:
        case Unit.SECONDS | Unit.MINUTES:
            return _count(round(seconds / _SECONDS[unit]), unit)
        case Unit.HOURS:
            hours, rest = divmod(round(seconds / 60), 60)
            return _join(_count(hours, unit), _count(rest, Unit.MINUTES) if rest and days < 2 else "")
        case Unit.WEEKS if days >= 7:
            return _join(_count(days // 7, unit), _count(days % 7, Unit.DAYS) if days % 7 else "")
        case Unit.MONTHS | Unit.YEARS:
            months, rest = _months(begin.date(), end.date())
            if unit is Unit.YEARS and months >= 12:
                return _join(_count(months // 12, unit), _count(months % 12, Unit.MONTHS) if months % 12 else "")
            if months:
                return _join(_count(months, Unit.MONTHS), _count(rest, Unit.DAYS) if rest else "")
    return speak_duration(timedelta(seconds=seconds)) if has_time else _count(days, Unit.DAYS)


def _months(begin: date, end: date) -> tuple[int, int]:
    """Returns the whole months between two days, and the days left over."""
    months = (end.year - begin.year) * 12 + end.month - begin.month - (end.day < begin.day)
    year, month = divmod(begin.year * 12 + begin.month - 1 + months, 12)
    after = date(year, month + 1, 1) + timedelta(days=begin.day - 1)
    return months, max(0, (end - after).days)


def _count(number: int, unit: Unit) -> str:
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"


def _join(first: str, second: str) -> str:
    return f"{first} and {second}" if second else first


def _name(when: When, now: datetime) -> str:
    if isinstance(when, datetime):
        is_today = when.date() == now.date()
        return speak_time(when) if is_today else f"{speak_time(when)} on {speak_date(when.date(), now.date())}"
    return speak_date(when, now.date())


def _speak_day(day: date, today: date, length: str, *, is_exact: bool) -> str:
    words = speak_date(day, today)
    days = (day - today).days
    if days in (-1, 0, 1) and not (is_exact and days):
        return f"That {('was yesterday', 'is today', 'is tomorrow')[days + 1]}, {words}."
    return f"It's {length} until {words}." if days > 0 else f"That was {length} ago, on {words}."


def _speak_moment(moment: datetime, left: timedelta, length: str, now: datetime) -> str:
    days = (moment.date() - now.date()).days
    day = {-1: " yesterday", 0: "", 1: " tomorrow"}.get(days, f" on {speak_date(moment.date(), now.date())}")
    if days == 1 and moment.time() == time():
        day = " tonight"
    if left >= timedelta(0):
        return f"It's {length} until {speak_time(moment)}{day}."
    return f"That was {length} ago, at {speak_time(moment)}{day}."
