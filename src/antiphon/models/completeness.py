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


class Completeness(Enum):
    OVER = auto()
    """A whole request, and nothing that is known begins like it and goes on."""
    WHOLE = auto()
    """One that could go on: "what time is it", before "in Tokyo"."""
    BEGUN = auto()
    """The beginning of one."""
    UNKNOWN = auto()
    """Words that nothing is known about."""


def hangs(text: str) -> bool:
    """Whether the last word leaves something open, or the melody did: a recogniser hears that as a comma.

    A full stop says nothing: it is put behind unfinished sentences too.
    """
    return _HANGS.search(text) is not None
