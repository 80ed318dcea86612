"""Parses the numbers that people say, and writes number words as digits."""

import re
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from antiphon.words.speech import ordinal

_ONES: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = {"trillion": 10**12, "billion": 10**9, "million": 10**6, "thousand": 10**3}

_SMALL: Final = {word: number for number, word in enumerate(_ONES)} | {"nought": 0, "naught": 0, "nil": 0}
_TENS_VALUES: Final = {word: 20 + 10 * place for place, word in enumerate(_TENS)} | {"fourty": 40}
_MULTIPLIERS: Final = _SCALES | {"dozen": 12}
_PARTS: Final = {word: Fraction(1, 2) for word in ("half", "halves")} | {
    word: Fraction(1, 4) for word in ("quarter", "quarters")
}
_ARTICLES: Final = ("a", "an")

_IRREGULAR_ORDINALS: Final = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
}
_ORDINALS: Final = (
    {f"{word}th": word for word in (*_ONES, "hundred", *_SCALES)}
    | {f"{word[:-1]}ieth": word for word in _TENS}
    | _IRREGULAR_ORDINALS
)

NUMBER_WORDS: Final = frozenset({*_SMALL, *_TENS_VALUES, *_MULTIPLIERS, *_PARTS, "hundred", "point"})
"""The words of which cardinal numbers consist, besides "and" and "a"."""

MAX_DIGITS: Final = 40
"""The most digits of a numeral, or after "point". People do not say more, and Python refuses to convert thousands."""

_NUMERAL: Final = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
_WORD: Final = re.compile(rf"[a-z]+|{_NUMERAL.pattern}", re.IGNORECASE | re.ASCII)
_SIGN: Final = re.compile(r"(?:minus|negative)\s+|[-−]\s*", re.IGNORECASE)
_ORDINAL_NUMERAL: Final = re.compile(r"(\d{1,15})(?:st|nd|rd|th)", re.ASCII)
_DATE_ORDINAL: Final = re.compile(
    # "a second" and "one second" are spans of time.
    r"\b(?<!\ba )(?<!\bone )(?<!\b1 )(?:(?:twenty|thirty) )?"
    r"(?:first|second|third|fifth|eighth|ninth|twelfth|(?:four|six|seven|ten|eleven|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen)th|twentieth|thirtieth)\b"
)
# In "half past six", "half" is not a number.
_HALF: Final = re.compile(r"\b(half|quarters?)\b")
_OH: Final = re.compile(r"(?<=\d )oh? (?=[1-9]\b)")


def parse_number(text: str) -> int | float | None:
    """Parses the whole text as a number, in words, digits or both ("minus 2.5 million"); None if it is not one."""
    text = text.strip()
    sign = _SIGN.match(text)
    text = text[sign.end() :] if sign else text
    words = list(_WORD.finditer(text))
    if not words or words[0].start() or words[-1].end() != len(text) or _run_length(text, words, 0) != len(words):
        return None
    found = _read_number([word.group().lower() for word in words], 0)
    if found is None or found[1] != len(words):
        return None
    value = -found[0] if sign else found[0]
    return int(value) if value.denominator == 1 else float(value)


def parse_ordinal(text: str) -> int | None:
    """Parses the whole text as an ordinal: "third", "twenty-first", "3rd"."""
    text = text.strip().lower()
    if numeral := _ORDINAL_NUMERAL.fullmatch(text):
        return int(numeral[1])
    *before, last = re.split(r"[\s-]+", text)
    if last not in _ORDINALS:
        return None
    words = " ".join([*before, _ORDINALS[last]])
    value = parse_number(words)
    # "hundredth" alone has no count before it.
    value = parse_number(f"a {words}") if value is None else value
    return value if isinstance(value, int) else None


def write_digits(text: str) -> str:
    """Replaces number words by digits, and leaves everything else unchanged.

    A sign stays a word ("minus three" is "minus 3"): in "five minus three" it is an operation.
    """
    words = list(_WORD.finditer(text))
    written: list[str] = []
    end = at = 0
    while at < len(words):
        run = _run_length(text, words, at)
        found = _read_number([word.group().lower() for word in words[at : at + run]], 0)
        count = found[1] if found else 1
        if found and not (count == 1 and words[at].group()[0].isdigit()):
            written += [text[end : words[at].start()], _digits(found[0])]
            end = words[at + count - 1].end()
        at += count
    return "".join([*written, text[end:]])


def _run_length(text: str, words: Sequence[re.Match[str]], at: int) -> int:
    """Counts the words from here on that could belong to one number: those separated by a space or hyphen."""
    longest = 1
    for before, after in zip(words[at:], words[at + 1 : at + MAX_DIGITS + 20], strict=False):
        gap = text[before.end() : after.start()]
        if not (gap.isspace() or (gap == "-" and before.group().isalpha() and after.group().isalpha())):
            break
        longest += 1
    return longest


def _digits(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return format(Context(prec=3 * MAX_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator)), "f")


_Found = tuple[Fraction, int]
"""A value, and the index of the first word after it."""


def _word(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else ""


def _read_number(words: Sequence[str], at: int) -> _Found | None:
    """Reads the longest number that starts at a word."""
    whole = _read_whole(words, at)
    found = _read_decimals(words, whole, at) or _read_part(words, whole, at)
    if found is None:
        return whole
    value, end = found
    # "two and a half million", "half a million"
    after = end + (_word(words, end) in _ARTICLES)
    scale = _MULTIPLIERS.get(_word(words, after))
    return (value * scale, after + 1) if scale else found


def _read_whole(words: Sequence[str], at: int) -> _Found | None:
    """Groups of hundreds with ever smaller scales: "two million three hundred thousand and five"."""
    found: _Found | None = None
    total, smallest = Fraction(0), 10**15
    while group := _read_group(words, at):
        value, at = group
        scale = _MULTIPLIERS.get(_word(words, at))
        if scale is None:
            return (total + value, at) if value < smallest else found
        if scale >= smallest:
            break
        total, smallest, at = total + value * scale, scale, at + 1
        found = total, at
        at += _word(words, at) == "and"
    return found


def _read_group(words: Sequence[str], at: int) -> _Found | None:
    """Reads a number below a thousand, "twelve hundred", a numeral, or the "a" of "a million"."""
    if _word(words, at) in _ARTICLES and (_word(words, at + 1) == "hundred" or _word(words, at + 1) in _MULTIPLIERS):
        value, at = Fraction(1), at + 1
    elif below := _read_below_hundred(words, at):
        value, at = below
    else:
        return None
    if _word(words, at) != "hundred" or not 0 < value < 100:
        return value, at
    value, at = value * 100, at + 1
    rest = _read_below_hundred(words, at + (_word(words, at) == "and"))
    return (value + rest[0], rest[1]) if rest and rest[0] < 100 else (value, at)


def _read_below_hundred(words: Sequence[str], at: int) -> _Found | None:
    word = _word(words, at)
    if word in _TENS_VALUES:
        unit = _SMALL.get(_word(words, at + 1), 0)
        has_unit = 0 < unit < 10
        return Fraction(_TENS_VALUES[word] + unit * has_unit), at + 1 + has_unit
    if word in _SMALL:
        return Fraction(_SMALL[word]), at + 1
    if _NUMERAL.fullmatch(word) and len(word) <= MAX_DIGITS:
        return Fraction(word.replace(",", "")), at + 1
    return None


def _read_decimals(words: Sequence[str], whole: _Found | None, at: int) -> _Found | None:
    """Reads what follows "point". The digits are said one by one ("one four") or two by two ("fourteen")."""
    value, at = whole or (Fraction(0), at)
    if _word(words, at) != "point" or value.denominator != 1:
        return None
    at += 1
    digits = ""
    while len(digits) < MAX_DIGITS:
        if _word(words, at) in ("oh", "o"):
            digits, at = digits + "0", at + 1
        elif (pair := _read_below_hundred(words, at)) and pair[0].denominator == 1:
            # A numeral keeps its leading zeros: "3 point 05".
            digits, at = digits + (words[at] if words[at].isdigit() else str(pair[0])), pair[1]
        else:
            break
    return (value + Fraction(f"0.{digits}"), at) if digits else None


def _read_part(words: Sequence[str], whole: _Found | None, at: int) -> _Found | None:
    """Halves and quarters: "half", "a quarter", "three quarters", "two and a half"."""
    if whole is None:
        at += _word(words, at) in _ARTICLES
        return (_PARTS[words[at]], at + 1) if _word(words, at) in _PARTS else None
    value, at = whole
    if _word(words, at) in _PARTS:
        return value * _PARTS[words[at]], at + 1
    if _word(words, at) != "and":
        return None
    count = _read_below_hundred(words, at + 1) or ((Fraction(1), at + 2) if _word(words, at + 1) in _ARTICLES else None)
    if count is None or _word(words, count[1]) not in _PARTS:
        return None
    return value + count[0] * _PARTS[words[count[1]]], count[1] + 1


def to_digits(text: str) -> str:
    """Replaces the number words of a lower-case text about dates and times by digits.

    Adjacent numbers stay separate, since only the grammar of dates knows whether "20 27" is a year and "6 30" a time.
    """
    text = _DATE_ORDINAL.sub(_write_ordinal, " ".join(text.split()))
    pieces = [piece if _HALF.fullmatch(piece) else write_digits(piece) for piece in _HALF.split(text)]
    return _OH.sub("0", "".join(pieces))


def _write_ordinal(match: re.Match[str]) -> str:
    number = parse_ordinal(match[0])
    return match[0] if number is None else ordinal(number)
