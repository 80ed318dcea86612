"""Numbers, times, dates and durations in words that a voice reads well and a recogniser would write the same way."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from unicode_rbnf import RbnfEngine

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))
_SPOKEN_WHOLE_BELOW: Final = 15
"""The power of ten from which digits are too hard to follow, and "10 to the 15" is said instead."""
_SPOKEN_SMALLEST: Final = -4
_EXACT_DECIMALS: Final = 4
_ROUNDED_DECIMALS: Final = 3


def ordinal(number: int) -> str:
    """Returns 1st, 2nd, 3rd, 4th, …, 11th, …, 21st."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def spell_number(value: int) -> str:
    """Spells a whole number below a thousand trillion in words: 1105 is "one thousand one hundred and five"."""
    if abs(value) >= 10**15:
        raise ValueError(f"{value} is too large to be spelled out")
    # CLDR puts a comma between groups from a million on, which a voice reads as a pause.
    return _spelling().format_number(value, ruleset_names=["spellout-cardinal-verbose"]).text.replace(",", "")


@cache
def _spelling() -> "RbnfEngine":
    # Imported here: it takes 50 ms and 10 MB, unless hassil has imported it already.
    from unicode_rbnf import RbnfEngine

    return RbnfEngine.for_language("en")


def speak_number(value: int | float | Decimal) -> str:
    """Phrases a number for an answer: "1,024", "minus 2.5", "about 0.333", "about 1.27 times 10 to the 30".

    Digits rather than words: voices read them well, and the same text is displayed. "About" marks rounding.
    """
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        return "not a number" if number.is_nan() else "minus infinity" if number < 0 else "infinity"
    size = number.adjusted() if number else 0
    # Not abs(), which rounds to 28 digits.
    amount = number.copy_abs()
    if _SPOKEN_SMALLEST <= size < _SPOKEN_WHOLE_BELOW:
        text, told = _speak_plain(amount, size)
    else:
        text, told = _speak_power(amount)
    sign = "minus " if number < 0 else ""
    about = "" if told == amount else "about "
    return f"{about}{sign}{text}"


def _speak_plain(number: Decimal, size: int) -> tuple[str, Decimal]:
    # Below one, what counts is the digits after the zeros.
    zeros = max(0, -size - 1)
    for decimals in (_EXACT_DECIMALS, _ROUNDED_DECIMALS):
        text = f"{number:,.{decimals + zeros}f}"
        text = text.rstrip("0").rstrip(".")
        told = Decimal(text.replace(",", ""))
        if told == number:
            break
    return text, told


def _speak_power(number: Decimal) -> tuple[str, Decimal]:
    mantissa, exponent = f"{number:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10 to the {exponent.replace('-', 'minus ').lstrip('+')}"
    return power if mantissa == "1" else f"{mantissa} times {power}", Decimal(f"{mantissa}e{exponent}")


def speak_time(at: datetime | time) -> str:
    """Phrases a time: "4:10 PM", "4 PM", "noon", "midnight"."""
    if at.minute == 0 and at.hour in (0, 12):
        return "noon" if at.hour else "midnight"
    # Voices read "4:00" as "four zero zero".
    minutes = f":{at.minute:02}" if at.minute else ""
    return f"{at.hour % 12 or 12}{minutes} {'AM' if at.hour < 12 else 'PM'}"


def speak_date(day: date, today: date) -> str:
    """Phrases a date: "Thursday, January 1st", with the year only if it is not today's."""
    words = f"{day:%A}, {day:%B} {ordinal(day.day)}"
    return words if day.year == today.year else f"{words}, {day.year}"


def speak_day(day: date, today: date) -> str:
    """Phrases a day so that it fits into a sentence: "today", "tomorrow", "on Friday, January 9th"."""
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get((day - today).days)
    return near or f"on {speak_date(day, today)}"


def speak_near_day(day: date, today: date) -> str:
    """Phrases a day of the coming week without its date: "today", "tomorrow", "on Friday"."""
    days = (day - today).days
    return ("today", "tomorrow")[days] if days in (0, 1) else f"on {day:%A}"


def speak_span(start: datetime, end: datetime, today: date) -> str:
    """Phrases a length of time between two moments of one zone: "tomorrow from 3 PM to 4 PM", "today at noon"."""
    day = speak_day(start.date(), today)
    if start == end:
        return f"{day} at {speak_time(start)}"
    if start.time() == end.time() == time():
        last = end.date() - timedelta(days=1)
        return (
            f"{day}, all day" if last == start.date() else f"{_from(day)} to {_bare(speak_day(last, today))}, all day"
        )
    if start.date() == end.date() or (end - start < timedelta(days=1) and end.time() == time()):
        return f"{day} from {speak_time(start)} to {speak_time(end)}"
    return f"{_from(day)} at {speak_time(start)} to {_bare(speak_day(end.date(), today))} at {speak_time(end)}"


def _from(day: str) -> str:
    return f"from {_bare(day)}"


def _bare(day: str) -> str:
    return day.removeprefix("on ")


def speak_duration(delta: timedelta) -> str:
    """Returns the length in its two largest units, such as "2 days and 5 hours", without a direction."""
    seconds = abs(round(delta.total_seconds()))
    if seconds < 60:
        return _count(seconds, "second")
    # Rounded to the smallest unit mentioned, so that 59.9 minutes are an hour.
    smallest = 3_600 if seconds >= 86_400 else 60
    rest = (seconds + smallest // 2) // smallest * smallest
    said = []
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        if count:
            said.append(_count(count, unit))
    return " and ".join(said)


def speak_length(delta: timedelta) -> str:
    """Returns a length to the second: "1 minute and 30 seconds", "1 hour, 2 minutes and 5 seconds"."""
    rest = max(0, round(delta.total_seconds()))
    said = []
    for unit, length in (*_UNITS, ("second", 1)):
        count, rest = divmod(rest, length)
        if count:
            said.append(_count(count, unit))
    *before, last = said or ["0 seconds"]
    return f"{', '.join(before)} and {last}" if before else last


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
