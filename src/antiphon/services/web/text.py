"""Makes plain text of what search engines send."""

import html
import re
from typing import Final

from antiphon.words.reported import shorten

_TAG: Final = re.compile(r"</?[a-zA-Z!][^<>]*>")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def plain(text: str, max_chars: int) -> str:
    """Returns one line without tags, entities and invisible characters, cut at a word."""
    return shorten(_UNPRINTABLE.sub("", html.unescape(_TAG.sub("", text))), max_chars)


def first_sentences(text: str, max_chars: int) -> str:
    """Returns as many whole sentences as fit, or a part of the first."""
    ends = [match.end() for match in re.finditer(r"(?<=[a-z0-9)\]”\"'’])[.!?](?=\s+[A-Z“\"(]|\s*\Z)", text)]
    fitting = [end for end in ends if end <= max_chars]
    return text[: fitting[-1]].strip() if fitting else plain(text, max_chars)
