"""Texts that make no sound."""

from typing import Final
from unicodedata import category

_SOUNDING: Final = frozenset("LNS")
"""Letters, numbers, and symbols such as the euro sign."""


def is_silent(text: str) -> bool:
    """Whether nothing in it can be said. Engines differ in what they make of "…": nothing, a groan, or an error."""
    return not any(category(character)[0] in _SOUNDING for character in text)
