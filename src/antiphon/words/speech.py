"""Times, dates and durations, in words that a voice speaks well and a recogniser would write the same way."""

from datetime import date, datetime, time, timedelta
from typing import Final

from antiphon.words.digits import ordinal

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def speak_time(at: datetime | time) -> str:
    """ "4:10 PM", "4 PM", "noon", "midnight"."""
    if at.minute == 0 and at.hour in (0, 12):
        return "noon" if at.hour else "midnight"
    # Voices read "4:00" as "four zero zero".
    minutes = f":{at.minute:02}" if at.minute else ""
    return f"{at.hour % 12 or 12}{minutes} {'AM' if at.hour < 12 else 'PM'}"


def speak_date(day: date, today: date) -> str:
    """ "Thursday, January 1st"; with the year only if it is not today's."""
    words = f"{day:%A}, {day:%B} {ordinal(day.day)}"
    return words if day.year == today.year else f"{words}, {day.year}"


def speak_duration(delta: timedelta) -> str:
    """The length in its two largest units, such as "2 days and 5 hours"; whether it is ahead or ago is not said."""
    seconds = abs(round(delta.total_seconds()))
    if seconds < 60:
        return _count(seconds, "second")
    # Rounded to the smallest unit that will be said, so that 59.9 minutes are an hour.
    smallest = 3_600 if seconds >= 86_400 else 60
    rest = (seconds + smallest // 2) // smallest * smallest
    said = []
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        if count:
            said.append(_count(count, unit))
    return " and ".join(said)


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
