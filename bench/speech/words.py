"""Compares what two texts say: word errors, regardless of number formats, spelling and punctuation."""

import re
from collections.abc import Iterable
from typing import Final

from rapidfuzz.distance import Levenshtein

from antiphon.words.numbers import to_digits

_SYMBOLS: Final = {"%": " percent ", "+": " plus ", "&": " and ", "=": " equals "}
_WORD: Final = re.compile(r"\d+(?:st|nd|rd|th)?|[a-z']+")
_SAME: Final = {
    "kilometres": "kilometers",
    "dr": "doctor",
    "mr": "mister",
    "gb": "gigabytes",
    "disc": "disk",
    "ok": "okay",
    "o'clock": "",
}
"""Different spellings of the same words."""
_REWRITTEN: Final = (
    (re.compile(r"\$(\d[\d,]*)(?:\.(\d\d)\b)?"), r"\1 dollars \2"),
    (re.compile(r"\b([ap])[. ]{0,2}m\b\.?"), r"\1m"),
    (re.compile(r"\be-mail"), "email"),
    (re.compile(r"(?<![\w-])-(?=\d)"), "minus "),
    (re.compile(r"(?<=\d)(?=gb\b)"), " "),
)
"""Different notations of the same words."""
_DIVIDED: Final = re.compile(r"(?<=\bto)-(?=day|morrow|night)|(?<=\bgood)-(?=bye)|(?<=\bper) (?=cent)")


def normalize(text: str) -> list[str]:
    text = _DIVIDED.sub("", text.lower().replace("’", "'"))
    for pattern, rewritten in _REWRITTEN:
        text = pattern.sub(rewritten, text)
    for symbol, word in _SYMBOLS.items():
        text = text.replace(symbol, word)
    # "1,250" is one number, and so is "7:00"; "7:30" and "seven thirty" are both two.
    text = re.sub(r"(?<=\d),(?=\d{3}\b)|(?<=\d):00\b", "", text)
    # "991-20" is how the model writes "nine hundred and ninety one minus twenty".
    text = re.sub(r"(?<=\d)-(?=\d)", " minus ", text)
    words = _WORD.findall(to_digits(text.replace("-", " ")))
    return [said for word in words if (said := _SAME.get(word, word))]


def count_errors(expected: str, heard: str) -> int:
    """Counts wrong, missing and additional words."""
    return Levenshtein.distance(normalize(expected), normalize(heard))


def error_rate(pairs: Iterable[tuple[str, str]]) -> float:
    """Returns the errors per expected word, over pairs of expected and recognised texts."""
    errors = words = 0
    for expected, heard in pairs:
        errors += count_errors(expected, heard)
        words += len(normalize(expected))
    return errors / words if words else 0.0
