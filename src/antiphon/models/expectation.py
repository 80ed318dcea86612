"""What kind of words an answer asks for. People pause longer while they say some of them."""

from enum import StrEnum


class Expectation(StrEnum):
    NOTHING = "nothing"
    """The answer asks for nothing in particular."""
    DIGITS = "digits"
    """A telephone number, a code, an account: groups of digits with pauses in between."""
    SPELLING = "spelling"
    """A word, letter by letter."""
    EMAIL = "email"
    NAME = "name"
    LIST = "list"
    """Several items, one after the other."""
