"""How much of a request words are, as far as words can tell."""

import re
from enum import Enum, auto
from typing import Final

_HANGS: Final = re.compile(
    r"\b(?:an?|the|my|your|his|her|our|their|some|any|to|of|for|in|on|at|by|with|from|about|into|until|till|than|as|and|or|"
    r"but|if|because|that|is|are|was|were|be|i)[\s.!?\"”]*$|[,…—-]\s*$",
    re.IGNORECASE,
)
"""Nobody ends with such a word, or hardly ever: whoever does is waited for a little longer."""

_GROWS: Final = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"hundred|thousand|million|billion|\d+00)[\s.!?]*$",
    re.IGNORECASE,
)
"""Months get days, and hundreds get the rest: "until March … the sixteenth", "two hundred … and five"."""


class Completeness(Enum):
    OVER = auto()
    """A whole request, and nothing that is known begins like it and goes on."""
    WHOLE = auto()
    """One that could go on: "what time is it", before "in Tokyo", or "until March", before "the sixteenth"."""
    BEGUN = auto()
    """The beginning of one."""
    UNKNOWN = auto()
    """Words that nothing is known about."""


def hangs(text: str) -> bool:
    """Whether the last word leaves something open, or the melody did: a recogniser hears that as a comma.

    A full stop says nothing: it is put behind unfinished sentences too.
    """
    return _HANGS.search(text) is not None


def could_grow(text: str) -> bool:
    """Whether its last word is whole, but often only the beginning of a date or of a number."""
    return _GROWS.search(text) is not None
