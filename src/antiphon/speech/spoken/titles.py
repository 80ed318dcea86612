"""Abbreviations. Their full stops are taken for the end of a sentence by voices: "Mister. Smith"."""

import re
from typing import Final

from antiphon.words.days import MONTHS

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


def speak_titles(text: str) -> str:
    text = _TITLE.sub(lambda title: _TITLES[title[1] or title[0]], text)
    text = _WORD.sub(lambda word: _WORDS[word[1].lower()], text)
    text = _MONTH.sub(lambda month: _MONTHS[month[1]], text)
    text = _STREET.sub("Street", _NUMBER.sub("number ", text))
    text = _LETTERS.sub(_space_letters, text)
    return _INITIAL.sub(r"\1", text)


def _space_letters(letters: re.Match[str]) -> str:
    """ "U.S." as "U S", with its full stop where the text ends: it is that of the sentence too."""
    return letters[1].replace(".", " ").strip() + ("." if letters[2] is not None else "")
