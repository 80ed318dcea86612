"""The numbers of dates and times, from words to digits: "march twenty first" is "march 21st"."""

import re
from typing import Final

from antiphon.words.numbers import parse_ordinal, write_digits

_ORDINAL: Final = re.compile(
    # "a second" and "one second" are spans of time.
    r"\b(?<!\ba )(?<!\bone )(?<!\b1 )(?:(?:twenty|thirty) )?"
    r"(?:first|second|third|fifth|eighth|ninth|twelfth|(?:four|six|seven|ten|eleven|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen)th|twentieth|thirtieth)\b"
)
# "half past six" is no number, though "half" is one elsewhere.
_HALF: Final = re.compile(r"\b(half|quarters?)\b")
_OH: Final = re.compile(r"(?<=\d )oh? (?=[1-9]\b)")


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, …, 11th, …, 21st."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def to_digits(text: str) -> str:
    """Lower-case text with its number words as digits.

    Numbers side by side stay apart, for only the grammar of dates knows whether "20 27" is a year and "6 30" a time.
    """
    text = _ORDINAL.sub(_write_ordinal, " ".join(text.split()))
    pieces = [piece if _HALF.fullmatch(piece) else write_digits(piece) for piece in _HALF.split(text)]
    return _OH.sub("0", "".join(pieces))


def _write_ordinal(match: re.Match[str]) -> str:
    number = parse_ordinal(match[0])
    return match[0] if number is None else ordinal(number)
