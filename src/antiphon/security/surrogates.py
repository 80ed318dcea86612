"""Halves of UTF-16 surrogate pairs in text of others, which no UTF-8 can hold: joined, or replaced by U+FFFD. Pure.

JSON may write a character beyond the first 65,536 as two escapes, and a server that cuts its text after so many units
sends one of them alone.
"""

from typing import Any


def mend(text: str) -> str:
    """The text with every pair joined and every lone half replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mend_json(value: Any) -> Any:
    """The same for all strings of a JSON value, keys included."""
    match value:
        case str():
            return mend(value)
        case dict():
            return {mend_json(key): mend_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [mend_json(inner) for inner in value]
    return value


class Mender:
    """Mends a text that comes in pieces: a pair may be split over two of them."""

    def __init__(self) -> None:
        self._half = ""

    def push(self, piece: str) -> str:
        """What is certain now. A first half at the end of the piece waits for what comes next."""
        text = self._half + piece
        ends_in_half = "\ud800" <= text[-1:] <= "\udbff"
        self._half = text[-1] if ends_in_half else ""
        return mend(text[:-1] if ends_in_half else text)

    def finish(self) -> str:
        """What is left at the end of the text."""
        half, self._half = self._half, ""
        return mend(half)
