"""Puts misspelt words right: "pls set a timr for 3 minuts".

Only a word that is none is changed, and only to a word that requests are made of, so that names stay as they are.
"""

import re
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import OSA

from antiphon.words.days import MONTHS, WEEKDAYS
from antiphon.words.sounds import sound_of

MIN_CHARS: Final = 3
LONG: Final = 6
"""From this length on a word may have two mistakes."""
REMEMBERED: Final = 1024

_SHORT_FORM_LIST: Final = """
    teh: the, taht: that, adn: and, pls: please, plz: please, thx: thanks, tmrw: tomorrow, tmr: tomorrow, tmw:
    tomorrow, tonite: tonight, ur: your, ment: meant, abt: about, wat: what, wats: what's, whats: what's, hows:
    how's, mins: minutes, secs: seconds, hrs: hours, temp: temperature, rn: right now
"""
_SHORT_FORMS: Final = dict(pair.split(": ") for pair in " ".join(_SHORT_FORM_LIST.split()).split(", "))
_EVERYDAY_LIST: Final = """
    thanks thank what when where which there about please could would should you your meant list lists remind time
    minute minutes second seconds hours today tomorrow tonight morning afternoon evening weather temperature
    reminder alarm timer degrees percent kitchen bedroom shopping calendar
"""
_EVERYDAY: Final = frozenset(_EVERYDAY_LIST.split()) | frozenset(day.lower() for day in (*WEEKDAYS, *MONTHS))
_WORD: Final = re.compile(r"(?<![\w@./'’-])[^\W\d_]{2,}(?![\w@/'’-]|\.\w)")
_QUOTED: Final = re.compile(r'("[^"]*"|“[^”]*”)')


class Speller:
    """Knows the words that requests are made of. `lexicon` tells whether something is a word at all."""

    def __init__(self, words: Iterable[str], lexicon: Container[str]) -> None:
        requests = {word.lower() for word in words if len(word) > MIN_CHARS and word.isalpha()}
        self._targets = sorted(_EVERYDAY | {word for word in requests if word in lexicon})
        self._lexicon = lexicon
        self._right = lru_cache(REMEMBERED)(self._find_right)

    def put_right(self, text: str) -> str:
        """Returns the text with its misspelt words put right. What is in quotation marks stays as it is."""
        parts = _QUOTED.split(text)
        return "".join(part if at % 2 else _WORD.sub(self._replace, part) for at, part in enumerate(parts))

    def _replace(self, match: re.Match[str]) -> str:
        said = match[0]
        # Inside a sentence, a capital is a name's.
        is_name = said != said.lower() and match.start() > 0
        right = said if is_name else self._right(said.lower())
        return said if right == said.lower() else right

    def _find_right(self, word: str) -> str:
        if short := _SHORT_FORMS.get(word):
            return short
        if len(word) < MIN_CHARS or word in self._targets or any(stem in self._lexicon for stem in _stems(word)):
            return word
        most = 2 if len(word) >= LONG else 1
        near = (
            (distance, target not in _EVERYDAY, abs(len(target) - len(word)), target)
            for target in self._targets
            if (distance := OSA.distance(word, target, score_cutoff=most)) <= most and _is_likely(word, target)
        )
        return min(near, default=(0, False, 0, word))[3]


def _stems(word: str) -> tuple[str, ...]:
    """Returns the word, and what it may be the plural of."""
    return word, word.removesuffix("s"), word.removesuffix("es")


def _is_likely(word: str, target: str) -> bool:
    """Whether a slip of the finger or of the ear makes the one of the other.

    The sound or the first letter stays, and in a short word no letter is another one: "bakw" may be "bake" or "bark".
    """
    if sound_of(word) == sound_of(target):
        return True
    is_other_letter = len(word) == len(target) and sorted(word) != sorted(target)
    return word[0] == target[0] and not (is_other_letter and len(word) < LONG)
