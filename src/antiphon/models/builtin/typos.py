"""Puts misspelt words right: "pls set a timr for 3 minuts".

Only a word that is none is changed, and only to a word that requests are made of: names stay as they are.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import OSA

from antiphon.words.days import MONTHS, WEEKDAYS

MIN_CHARS: Final = 3
LONG: Final = 6
"""From this length on a word may have two mistakes."""
REMEMBERED: Final = 1024

_SHORT_FORMS: Final = {
    **{"pls": "please", "plz": "please", "thx": "thanks", "tmrw": "tomorrow", "tmr": "tomorrow", "tmw": "tomorrow"},
    **{"tonite": "tonight", "ur": "your", "wat": "what", "wats": "what's", "whats": "what's", "hows": "how's"},
    **{"ment": "meant"},
    **{"abt": "about", "mins": "minutes", "secs": "seconds", "hrs": "hours", "temp": "temperature", "rn": "right now"},
}
_EVERYDAY: Final = frozenset(
    "what when where which there about please minute minutes second seconds hours today tomorrow tonight morning"
    " afternoon evening weather temperature reminder alarm timer degrees percent kitchen bedroom shopping calendar".split()
) | frozenset(day.lower() for day in (*WEEKDAYS, *MONTHS))
_WORD: Final = re.compile(r"(?<![\w@./'’-])[^\W\d_]{2,}(?![\w@/'’-]|\.\w)")
_QUOTED: Final = re.compile(r'("[^"]*"|“[^”]*”)')


class Speller:
    """Knows the words that requests are made of. `knows` tells whether something is a word at all."""

    def __init__(self, words: Iterable[str], knows: Callable[[str], bool]) -> None:
        self._targets = sorted(
            {word.lower() for word in words if len(word) > MIN_CHARS and word.isalpha() and knows(word.lower())}
            | _EVERYDAY
        )
        self._knows = knows
        self._right = lru_cache(REMEMBERED)(self._find_right)

    def put_right(self, text: str) -> str:
        """Returns the text with its misspelt words put right. What is in quotation marks stays as it is."""
        parts = _QUOTED.split(text)
        return "".join(
            part if at % 2 else _WORD.sub(lambda match: self._right(match[0]), part) for at, part in enumerate(parts)
        )

    def _find_right(self, said: str) -> str:
        word = said.lower()
        if short := _SHORT_FORMS.get(word):
            return short
        # A capital inside a sentence is a name's, and the first word of one is seldom misspelt.
        if len(word) < MIN_CHARS or said != word or word in self._targets or self._knows(word):
            return said
        most = 2 if len(word) >= LONG else 1
        near = [
            (distance, target[0] != word[0], abs(len(target) - len(word)), target)
            for target in self._targets
            if (distance := OSA.distance(word, target, score_cutoff=most)) <= most
        ]
        # One mistake in another first letter ("koin") is a mishearing; two are another word.
        best = min((each for each in near if not (each[1] and each[0] > 1)), default=None)
        return said if best is None else best[3]
