"""Days that have a name, by year. Where countries differ, the United States' day is meant.

The package `holidays` knows fewer of them: 21 of these 47 (its version 0.108, United States, with the unofficial ones),
none for the years 1500 or 9999. It takes 0.14 s and 19 MB at its first use, and python-dateutil below 3.
"""

from collections.abc import Callable
from datetime import MAXYEAR, date, timedelta
from typing import Final

MONDAY, THURSDAY, SUNDAY = 0, 3, 6

DayOfYear = Callable[[int], date]


def find_holiday(name: str) -> DayOfYear | None:
    """Returns a function from the year to the day. `name` is in lower case, without apostrophes."""
    return _BY_NAME.get(name)


def next_holiday(day_of: DayOfYear, today: date) -> date:
    """Returns its next occurrence; today counts. Raises ValueError after the last year."""
    this_year = day_of(today.year)
    if this_year >= today:
        return this_year
    if today.year == MAXYEAR:
        raise ValueError("no such day before the end of the calendar")
    return day_of(today.year + 1)


def easter(year: int) -> date:
    """Returns Easter Sunday, by the anonymous Gregorian computus (Meeus, Jones, Butcher)."""
    golden = year % 19
    century, rest = divmod(year, 100)
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    shift = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * shift + 114, 31)
    return date(year, month, day + 1)


def _fixed(month: int, day: int) -> DayOfYear:
    return lambda year: date(year, month, day)


def _nth(nth: int, weekday: int, month: int, *, plus_days: int = 0) -> DayOfYear:
    """Makes the rule for the nth such weekday of a month."""

    def day_of(year: int) -> date:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1) + plus_days)

    return day_of


def _last(weekday: int, month: int) -> DayOfYear:
    def day_of(year: int) -> date:
        last = date(year, month + 1, 1) - timedelta(days=1)
        return last - timedelta(days=(last.weekday() - weekday) % 7)

    return day_of


def _with_apostrophes(name: str) -> list[str]:
    return [f"{word[:-1]}'s" for word in name.split() if word.endswith("s")]


def _from_easter(days: int) -> DayOfYear:
    return lambda year: easter(year) + timedelta(days=days)


_HOLIDAYS: Final[dict[str, DayOfYear]] = {
    "new year|new years|new years day": _fixed(1, 1),
    "epiphany|three kings day": _fixed(1, 6),
    "martin luther king day|mlk day|martin luther king jr day": _nth(3, MONDAY, 1),
    "australia day": _fixed(1, 26),
    "groundhog day": _fixed(2, 2),
    "valentines|valentines day|valentine day|st valentines day": _fixed(2, 14),
    "presidents day|washingtons birthday": _nth(3, MONDAY, 2),
    "mardi gras|shrove tuesday|fat tuesday|pancake day": _from_easter(-47),
    "ash wednesday": _from_easter(-46),
    "international womens day|womens day": _fixed(3, 8),
    "pi day": _fixed(3, 14),
    "st patricks day|st patrick day|st paddys day": _fixed(3, 17),
    "palm sunday": _from_easter(-7),
    "good friday": _from_easter(-2),
    "easter|easter sunday|easter day": easter,
    "easter monday": _from_easter(1),
    "april fools|april fools day|april fool day": _fixed(4, 1),
    "earth day": _fixed(4, 22),
    "may day": _fixed(5, 1),
    "star wars day": _fixed(5, 4),
    "cinco de mayo": _fixed(5, 5),
    "mothers day|mother day": _nth(2, SUNDAY, 5),
    "memorial day": _last(MONDAY, 5),
    "ascension day|ascension": _from_easter(39),
    "pentecost|whitsun|whit sunday": _from_easter(49),
    "whit monday|pentecost monday": _from_easter(50),
    "fathers day|father day": _nth(3, SUNDAY, 6),
    "juneteenth": _fixed(6, 19),
    "midsummer|midsummers day|midsummer day": _fixed(6, 24),
    "canada day": _fixed(7, 1),
    "independence day": _fixed(7, 4),
    "bastille day": _fixed(7, 14),
    "labor day|labour day": _nth(1, MONDAY, 9),
    "columbus day|indigenous peoples day": _nth(2, MONDAY, 10),
    "halloween|all hallows eve": _fixed(10, 31),
    "all saints day|all saints": _fixed(11, 1),
    "all souls day|day of the dead": _fixed(11, 2),
    "guy fawkes night|guy fawkes day|guy fawkes|bonfire night": _fixed(11, 5),
    "election day": _nth(1, MONDAY, 11, plus_days=1),
    "veterans day|armistice day|remembrance day": _fixed(11, 11),
    "thanksgiving|thanksgiving day": _nth(4, THURSDAY, 11),
    "black friday": _nth(4, THURSDAY, 11, plus_days=1),
    "cyber monday": _nth(4, THURSDAY, 11, plus_days=4),
    "christmas eve|xmas eve": _fixed(12, 24),
    "christmas|christmas day|xmas|xmas day": _fixed(12, 25),
    "boxing day|st stephens day": _fixed(12, 26),
    "new years eve|new year eve": _fixed(12, 31),
}
_BY_NAME: Final = {name: day_of for names, day_of in _HOLIDAYS.items() for name in names.split("|")}
HOLIDAY_WORDS: Final = frozenset(word for name in _BY_NAME for word in (*name.split(), *_with_apostrophes(name)))
"""The words of which the names of holidays consist, with and without an apostrophe."""
