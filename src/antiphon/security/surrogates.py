"""Repairs halves of UTF-16 surrogate pairs, which UTF-8 cannot encode: joins them, or replaces them by U+FFFD. Pure.

JSON may write a character beyond the first 65,536 as two escapes, and a server that cuts its text may send only one.
"""

from typing import Any


def repair(text: str) -> str:
    """Joins every pair, and replaces every lone half."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def repair_json(value: Any) -> Any:
    """Repairs all strings of a JSON value, including keys."""
    match value:
        case str():
            return repair(value)
        case dict():
            return {repair_json(key): repair_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [repair_json(inner) for inner in value]
    return value


class StreamRepairer:
    """Repairs a text that arrives in pieces, since a pair may be split between two of them."""

    def __init__(self) -> None:
        self._half = ""

    def push(self, piece: str) -> str:
        """Returns the text so far. A first half at the end of the piece waits for the next one."""
        text = self._half + piece
        ends_in_half = "\ud800" <= text[-1:] <= "\udbff"
        self._half = text[-1] if ends_in_half else ""
        return repair(text[:-1] if ends_in_half else text)

    def finish(self) -> str:
        """Returns what is left at the end of the text."""
        half, self._half = self._half, ""
        return repair(half)
