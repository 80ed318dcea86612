"""Money, measures, dates, times, ranges and fractions in words."""

import re
from collections.abc import Callable
from datetime import date
from typing import Final

from antiphon.words.days import MONTHS
from antiphon.words.speech import ordinal, spell_number

_SIGNS: Final = {
    "kilometer": "km",
    "meter": "m",
    "centimeter": "cm",
    "millimeter": "mm",
    "mile": "mi",
    "yard": "yd",
    "square kilometer": "km²|km2",
    "square meter": "m²|m2|sqm",
    "square centimeter": "cm²",
    "cubic meter": "m³|m3",
    "kilogram": "kg",
    "gram": "g",
    "milligram": "mg",
    "microgram": "µg|μg|mcg",
    "pound": "lb|lbs",
    "ounce": "oz",
    "tablespoon": "tbsp",
    "teaspoon": "tsp",
    "liter": "l|L",
    "milliliter": "ml|mL",
    "kilometer per hour": "km/h|kmh|kph",
    "mile per hour": "mph",
    "meter per second": "m/s",
    "terabyte": "TB",
    "gigabyte": "GB|GiB",
    "megabyte": "MB|MiB",
    "kilobyte": "kB|KB|KiB",
    "gigabyte per second": "GB/s",
    "megabyte per second": "MB/s",
    "gigabit per second": "Gbps|Gbit/s|Gb/s",
    "megabit per second": "Mbps|Mbit/s|Mb/s",
    "kilowatt": "kW",
    "megawatt": "MW",
    "watt": "W",
    "kilowatt-hour": "kWh",
    "volt": "V",
    "milliampere-hour": "mAh",
    "decibel": "dB",
    "pixel": "px",
    "hour": "h|hr|hrs",
    "minute": "min|mins",
    "second": "s|sec|secs",
    "millisecond": "ms",
    "degree Celsius": "°C|° C|℃",
    "degree Fahrenheit": "°F|° F|℉",
    "degree": "°",
}
_IRREGULAR: Final = {
    "ft": ("foot", "feet"),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "ppm": ("part per million", "parts per million"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"),
}


def _several(name: str) -> str:
    """Puts the unit itself in the plural: "miles per hour", "degrees Celsius"."""
    head, *rest = name.split(" ")
    if head in ("square", "cubic"):
        return f"{name}s"
    return " ".join([f"{head}s", *rest])


UNITS: Final = _IRREGULAR | {
    sign: (name, _several(name)) for name, signs in _SIGNS.items() for sign in signs.split("|")
}
UNIT: Final = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
"""A pattern for the unit symbols, the longest first."""


Found = re.Match[str]

_NUMBER: Final = r"[0-9]{1,15}(?:,[0-9]{3}){0,5}(?:\.[0-9]{1,15})?"
_MONTH: Final = "|".join(name.title() for name in MONTHS)
_CURRENCIES: Final = {
    "$": ("dollar", "dollars", "cents"),
    "€": ("euro", "euros", "cents"),
    "£": ("pound", "pounds", "pence"),
    "¥": ("yen", "yen", "sen"),
    "₹": ("rupee", "rupees", "paise"),
}
_CODES: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_SCALES: Final = {"k": "thousand", "K": "thousand", "m": "million", "M": "million", "B": "billion", "bn": "billion"}
_PARTS: Final = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 8: "eighth", 10: "tenth"}
_DECADES: Final = (
    *("hundreds", "tens", "twenties", "thirties", "forties"),
    *("fifties", "sixties", "seventies", "eighties", "nineties"),
)


def speak_quantities(text: str) -> str:
    for pattern, words in _RULES:
        text = pattern.sub(words, text)
    return text


def _speak_iso_date(found: Found) -> str:
    spoken = _speak_day(int(found[1]), int(found[2]), int(found[3]))
    if spoken is None:
        return found[0]
    return f"{spoken} at {found[4]}" if found[4] else spoken


def _speak_slash_date(found: Found) -> str:
    first, second, year = int(found[1]), int(found[2]), int(found[3])
    # 25/12/2026 can only be the British order.
    return _speak_day(year, first, second) or _speak_day(year, second, first) or found[0]


def _speak_day(year: int, month: int, day: int) -> str | None:
    try:
        date(year, month, day)
    except ValueError:
        return None
    return f"{MONTHS[month - 1].title()} {ordinal(day)}, {year}"


def _speak_day_of_month(found: Found) -> str:
    return f"{found[1]} {ordinal(int(found[2]))}" if 1 <= int(found[2]) <= 31 else found[0]


def _speak_decade(found: Found) -> str:
    century, decade = found["century"], int(found["decade"])
    if century == "20" and not decade:
        return "two thousands"
    return f"{century} {_DECADES[decade]}" if century else _DECADES[decade]


def _speak_time(found: Found) -> str:
    """Voices read "10:05" as "ten zero five" and "9:00" as "nine zero zero"."""
    hour, minute = int(found[1]), int(found[2])
    half = f" {found[3].strip()}" if found[3] else ""
    if hour > 24 or minute > 59:
        return found[0]
    if minute == 0:
        return f"{hour}{half or ' o’clock'}"
    return f"{hour} oh {minute}{half}" if minute < 10 else f"{hour}:{minute}{half}"


def _speak_range(found: Found) -> str:
    low, high = (float(found[group].replace(",", "").lstrip("$€£")) for group in ("low", "high"))
    is_difference = found["before"] and found["after"] and (low >= high or found["equals"])
    return f"{found['low']} {'minus' if is_difference else 'to'} {found['high']}{found['equals']}"


def _speak_fraction(found: Found) -> str:
    whole, above, below = found[1], int(found[2]), int(found[3])
    part = _PARTS.get(below)
    if (above, below) == (24, 7):
        return found[0].replace("/", " ")
    if part is None or not 0 < above < below:
        return found[0]
    if whole and above == 1:
        return f"{whole} and {'an' if below == 8 else 'a'} {part}"
    spoken = f"{spell_number(above)} {part}{'s' if above > 1 else ''}"
    return f"{whole} and {spoken}" if whole else spoken


def _speak_money(found: Found) -> str:
    one, several, hundredths = _CURRENCIES[_CODES.get(found["symbol"], found["symbol"])]
    whole, _, rest = found["number"].partition(".")
    groups = found.groupdict()
    sign = "minus " if groups.get("sign") else ""
    if scale := groups.get("scale"):
        return f"{sign}{found['number']} {_SCALES.get(scale, scale)} {several}"
    if len(rest) not in (0, 2):
        return f"{sign}{found['number']} {several}"
    cents = int(rest or 0)
    if whole == "0" and cents:
        return f"{sign}{cents} {hundredths}"
    return f"{sign}{whole} {one if whole == '1' else several}{f' {cents}' if cents else ''}"


def _speak_measure(found: Found) -> str:
    one, several = UNITS[found[3]]
    return f"{found[1]} {one if found[1] == '1' or found[2] == '-' else several}"


def _speak_scale(found: Found) -> str:
    return f"{found[1]} {_SCALES[found[2]]}"


_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[Found], str]], ...]] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"(?<![\w-])([0-9]{4})-([0-9]{2})-([0-9]{2})"
            r"(?:[T ]([0-9]{2}:[0-9]{2})(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![\w-])",
            _speak_iso_date,
        ),
        (r"(?<![\w/])([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})(?![\w/])", _speak_slash_date),
        (rf"\b({_MONTH})\s([0-9]{{1,2}})(?![\w:%$]|[.,/][0-9]|\s?[-–]\s?[0-9])", _speak_day_of_month),
        (r"(?:(?<=the )|(?<![\w.,])['’])(?P<century>)(?P<decade>[2-9])0s\b", _speak_decade),
        (r"(?<![\w.,])(?P<century>[0-9]{2})(?P<decade>[0-9])0s\b", _speak_decade),
        (r"(?<![\w:.])([0-9]{1,2}):([0-9]{2})(?![0-9:])(\s?[aApP]\.?[mM]\b)?", _speak_time),
        (
            rf"(?<![\w.,/:-])(?P<low>{_NUMBER})(?P<before>\s?)[-–—](?P<after>\s?)(?P<high>[$€£]?{_NUMBER})"
            r"(?![-/:0-9]|[.,][0-9])(?P<equals>(?:\s?=)?)",
            _speak_range,
        ),
        (r"(?:(?<![\w.,])([0-9]{1,3})\s)?(?<![\w/.,-])([0-9]{1,2})/([0-9]{1,3})(?![\w/]|[.,][0-9])", _speak_fraction),
        (r"(?<=[0-9])\s?(?=[½¼¾⅓⅔⅛])", " and "),
        (
            rf"(?<![\w.,])(?P<sign>[-−])?(?:US)?(?P<symbol>[$€£¥₹])\s?(?P<number>{_NUMBER})"
            r"(?:\s?(?P<scale>thousand|million|billion|trillion|bn|[kKmMB])\b)?(?!\w)",
            _speak_money,
        ),
        (
            rf"(?<![\w.,])(?P<number>{_NUMBER})\s?(?P<symbol>[$€£¥₹]|{'|'.join(_CODES)})(?!\w)",
            _speak_money,
        ),
        (r"(?<![\w.])([0-9])['′]\s?([0-9]{1,2})[\"″](?!\w)", r"\1 foot \2"),
        (rf"(?<![\w.,])({_NUMBER})(\s|-)?({UNIT})(?![\w²³])", _speak_measure),
        (rf"(?<![\w.,])({_NUMBER})(M|B|bn)\b", _speak_scale),
        (r"(?<=\w)\s?/\s?(?=(?:second|minute|hour|day|week|month|year|night|person|user|item|piece)\b)", " per "),
        (r"(?<=[0-9])(?<!\b0)x(?=[0-9])", " by "),
        (r"(?<=[0-9]) [xX] (?=[0-9])", " times "),
        (r"(?<![\w.,)])\.(?=[0-9])", "0."),
    )
)
