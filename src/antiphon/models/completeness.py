"""Whether a text is a complete request, as far as its words can tell."""

import re
from enum import Enum, auto
from typing import Final

_HANGS: Final = re.compile(
    r"\b(?:an?|the|my|your|his|her|our|their|some|any|to|of|for|in|on|at|by|with|from|about|into|until|till|than|as|and|or|"
    r"but|if|because|that|is|are|was|were|be|i)[\s.!?\"”]*$|[,…—-]\s*$",
    re.IGNORECASE,
)
"""Hardly anybody ends with such a word: the user is given a little more time."""

_GROWS: Final = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"hundred|thousand|million|billion|\d+00)[\s.!?]*$",
    re.IGNORECASE,
)
"""Days follow months, and smaller numbers follow hundreds: "until March … the sixteenth", "two hundred … and five"."""


class Completeness(Enum):
    OVER = auto()
    """A complete request. No known request begins with it and goes on."""
    WHOLE = auto()
    """A complete request that could go on: "what time is it" (in Tokyo), or "until March" (the sixteenth)."""
    BEGUN = auto()
    """The beginning of a request."""
    UNKNOWN = auto()
    """No known request has these words."""


def hangs(text: str) -> bool:
    """Whether the text ends with a word that needs another, or with a comma: recognisers write one if the voice did not
    fall.

    A full stop tells nothing: recognisers put it behind unfinished sentences too.
    """
    return _HANGS.search(text) is not None


def could_grow(text: str) -> bool:
    """Whether the last word is often only the beginning of a date or of a number."""
    return _GROWS.search(text) is not None
