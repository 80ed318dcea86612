"""Signs that stand for words, and those that stand for nothing that can be said."""

import re
import unicodedata
from typing import Final

_SIGNS: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"(?:(?<!\.)\.{3,}+|…)(?=\s[a-z])", ","),
        (r"(?:\.{3,}|…)+", "."),
        (r"-{1,2}>|={1,2}>|[→⇒➜➔]", " to "),
        (r"<-{1,2}|[←⇐]", " from "),
        (r"\s(?:<=|≤)\s", " is at most "),
        (r"\s(?:>=|≥)\s", " is at least "),
        (r"\s(?:!=|≠)\s", " is not "),
        (r"\s<\s", " is less than "),
        (r"\s>\s", " is more than "),
        (r"\s==\s", " equals "),
        (r"\s-{1,2}\s", ", "),
        (r"(?<!\w)#(?=[0-9])", "number "),
        (r"\b([A-G])#(?!\w)", r"\1 sharp"),
        (r"~\s?(?=[0-9$€£])", "about "),
        (r"(?<=[0-9)\w])²", " squared"),
        (r"(?<=[0-9)\w])³", " cubed"),
        (r"(?<=[\w)])\^\(?(?=[\w-])", " to the "),
        (r"\b([Aa])nd/or\b", r"\1nd or"),
        (r"\b([Ww])/o\b", r"\1ithout"),
        (r"\b([Ww])/(?=\s)", r"\1ith"),
        (r"(?<![\w/.-])([a-z]{2,20})/([a-z]{2,20})(?![\w/.-])", r"\1 or \2"),
        (r"[#~^<>{}]+", " "),
    )
)

_READ: Final = frozenset("°©®™")
"""Pictures to Unicode, but voices have words for them."""
_DROPPED: Final = frozenset(("So", "Sk", "Cs", "Co", "Cn", "Cf", "Me"))


def speak_signs(text: str) -> str:
    for pattern, words in _SIGNS:
        text = pattern.sub(words, text)
    return text


def drop_pictures(text: str) -> str:
    """Without emoji and characters that are not seen, of which voices read names and numbers."""
    if text.isascii():
        return text.replace("\0", "")
    return "".join(each for each in text if each.isascii() or not _is_picture(each)).replace("\0", "")


def _is_picture(character: str) -> bool:
    return character not in _READ and (
        unicodedata.category(character) in _DROPPED or unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    )
