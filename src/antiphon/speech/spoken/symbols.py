"""Symbols and abbreviations in words. Voices take the full stop of an abbreviation for the end of a sentence."""

import re
import unicodedata
from typing import Final

from antiphon.words.days import MONTHS

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
"""Unicode counts these as pictographs, but voices can read them."""
_DROPPED: Final = frozenset(("So", "Sk", "Cs", "Co", "Cn", "Cf", "Me"))


def speak_symbols(text: str) -> str:
    for pattern, words in _SIGNS:
        text = pattern.sub(words, text)
    return text


def drop_emoji(text: str) -> str:
    """Removes emoji and invisible characters, whose names or numbers voices would read."""
    if text.isascii():
        return text.replace("\0", "")
    return "".join(each for each in text if each.isascii() or not _is_emoji(each)).replace("\0", "")


def _is_emoji(character: str) -> bool:
    return character not in _READ and (
        unicodedata.category(character) in _DROPPED or unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    )


_TITLES: Final = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Dr": "Doctor",
    "Prof": "Professor",
    "St": "Saint",
    "Mt": "Mount",
    "Gen": "General",
    "Sen": "Senator",
    "Rep": "Representative",
    "Gov": "Governor",
    "Capt": "Captain",
    "Col": "Colonel",
    "Sgt": "Sergeant",
    "Lt": "Lieutenant",
    "Rev": "Reverend",
}
_WORDS: Final = {
    "vs": "versus",
    "approx": "approximately",
    "e.g": "for example",
    "i.e": "that is",
    "a.k.a": "also known as",
}
_MONTHS: Final = {name[:3].title(): name.title() for name in MONTHS} | {"Sept": "September"}

_TITLE: Final = re.compile(rf"\b(?:({'|'.join(_TITLES)})\.|Ms)(?=\s+[A-Z])")
_WORD: Final = re.compile(r"\b(vs|approx|[Ee]\.g|[Ii]\.e|a\.k\.a)(?:\.|(?=\s))")
_MONTH: Final = re.compile(rf"\b({'|'.join(_MONTHS)})\b\.?(?=\s+[0-9])")
_NUMBER: Final = re.compile(r"\b[Nn]o\.\s+(?=[0-9])")
_LETTERS: Final = re.compile(r"\b((?:[A-Z]\.){2,10})(?!\w)(\s*\Z)?")
_INITIAL: Final = re.compile(r"(?:(?<=\A)|(?<=[a-z] )|(?<=[A-Z] )|(?<=\b[A-Z]\. ))([A-Z])\.(?=\s+[A-Z])")
_STREET: Final = re.compile(r"(?<=[a-z] )St\.?(?=,|\s*\Z)")


def speak_abbreviations(text: str) -> str:
    text = _TITLE.sub(lambda title: _TITLES[title[1] or title[0]], text)
    text = _WORD.sub(lambda word: _WORDS[word[1].lower()], text)
    text = _MONTH.sub(lambda month: _MONTHS[month[1]], text)
    text = _STREET.sub("Street", _NUMBER.sub("number ", text))
    text = _LETTERS.sub(_space_letters, text)
    return _INITIAL.sub(r"\1", text)


def _space_letters(letters: re.Match[str]) -> str:
    """Writes "U.S." as "U S", and keeps the full stop at the end of the text, where it also ends the sentence."""
    return letters[1].replace(".", " ").strip() + ("." if letters[2] is not None else "")
