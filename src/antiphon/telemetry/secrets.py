"""The secrets that this process has given to tools, so that nothing it writes or sends shows one."""

from typing import Final

MASK: Final = "***"
MIN_CHARS: Final = 6
"""A shorter value is not masked, since it would be found in many words and numbers."""

_known: Final[set[str]] = set()


def conceal(value: str) -> None:
    """Masks this value from now on, in the log and wherever `scrub` is used."""
    if len(value) >= MIN_CHARS:
        _known.add(value)


def scrub(text: str) -> str:
    """Replaces every concealed value in a text."""
    for value in _known:
        if value in text:
            text = text.replace(value, MASK)
    return text
