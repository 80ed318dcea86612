"""Whether a text is a complete request, as far as its words can tell."""

import re
from enum import Enum, auto
from typing import Final

_UNFINISHED: Final = re.compile(
    r"\b(?:an?|the|my|your|his|her|our|their|some|any|to|of|for|in|on|at|by|with|from|about|into|until|till|than|as|and|or|"
    r"but|if|because|that|is|are|was|were|be|i)[\s.!?\"”]*$|[,…—-]\s*$",
    re.IGNORECASE,
)
"""A request rarely ends with one of these words, so the user is given a little more time."""

_CONTINUABLE: Final = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"hundred|thousand|million|billion|\d+00)[\s.!?]*$",
    re.IGNORECASE,
)
"""Days follow months, and smaller numbers follow hundreds: "until March … the sixteenth", "two hundred … and five"."""


class Completeness(Enum):
    COMPLETE = auto()
    """A complete request. No known request begins with it and continues."""
    EXTENDABLE = auto()
    """A complete request that could continue: "what time is it" (in Tokyo), or "until March" (the sixteenth)."""
    PARTIAL = auto()
    """The beginning of a request."""
    UNKNOWN = auto()
    """No known request has these words."""


def is_unfinished(text: str) -> bool:
    """Whether the text ends with a word that needs another, or with a comma, which recognisers write if the pitch did
    not fall.

    A full stop means nothing: recognisers put it after unfinished sentences too.
    """
    return _UNFINISHED.search(text) is not None


def can_continue(text: str) -> bool:
    """Whether the last word is often only the beginning of a date or of a number."""
    return _CONTINUABLE.search(text) is not None
