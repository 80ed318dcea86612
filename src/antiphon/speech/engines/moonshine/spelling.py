"""The model has learned from old books too: what is "to-morrow" to it is "tomorrow" to a grammar, and to a reader."""

import re
from typing import Final

_DIVIDED: Final = re.compile(
    r"(?<=\bto)-(?=(?:day|night|morrow)\b)|(?<=\bgood)-(?=bye\b)|(?<=\bper) (?=cent\b)", re.IGNORECASE
)


def modernize(text: str) -> str:
    return _DIVIDED.sub("", text)
