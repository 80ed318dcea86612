"""Finds names of people where they are unambiguous: beside an e-mail address, or after a label."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from .addresses import Found

WINDOW_CHARACTERS: Final = 80
MAX_WORDS: Final = 4

_PARTICLES: Final = frozenset({"al", "bin", "da", "de", "del", "den", "der", "di", "du", "el", "la", "van", "von"})
_GREETINGS: Final = frozenset({"best", "bye", "dear", "greetings", "hello", "hi", "kind", "regards", "reply", "thanks"})
_LABELS: Final = frozenset({"attn", "call", "cc", "contact", "email", "from", "mail", "name", "phone", "tel", "to"})
_SMALL_WORDS: Final = frozenset({"and", "ask", "at", "for", "of", "or", "our", "please", "the", "via", "write", "your"})
_NOT_NAMES: Final = _GREETINGS | _LABELS | _SMALL_WORDS
_WORD: Final = re.compile(r"[^\W\d_][\w'’.-]{0,30}+")
_LABEL: Final = re.compile(
    r"^[ \t>*-]{0,10}(?:(?:full )?name|contact(?: person)?|attn|attention|from)[ \t]{0,3}:[ \t]{0,3}([^\n,;<(@]{2,80})",
    re.IGNORECASE | re.MULTILINE,
)


class Person(NamedTuple):
    name: str
    email: str | None


def find_people(text: str, emails: list[Found]) -> Iterator[Person]:
    """Yields people in the order of the text."""
    found: list[tuple[int, Person]] = []
    for address in emails:
        if name := _name_before(text, address.start):
            found.append((address.start, Person(name, address.text)))
    named = {person.name.casefold() for _, person in found}
    for match in _LABEL.finditer(text):
        words = match[1].strip().strip("\"'").split()
        if 2 <= len(words) <= MAX_WORDS and _are_name(words) and " ".join(words).casefold() not in named:
            found.append((match.start(), Person(" ".join(words), None)))
    return (person for _, person in sorted(found, key=lambda pair: pair[0]))


def _name_before(text: str, at: int) -> str | None:
    """Finds the name that an address belongs to: Jane Doe <…>, Jane Doe (…), Jane Doe, …, Jane Doe: …"""
    before = text[max(0, at - WINDOW_CHARACTERS) : at].rpartition("\n")[2].rstrip(" \t")
    if not before or before[-1] not in "<(,:-–[":
        return None
    bracketed = before[-1] == "<"
    words: list[str] = []
    for word in reversed(before[:-1].rstrip(" \t\"'").split()):
        bare = word.strip("\"'")
        if len(words) == MAX_WORDS or not _are_name([bare, *words]):
            break
        words.insert(0, bare)
    while words and words[0] in _PARTICLES:
        del words[0]
    # One word is a name only where mail programs put names: "Jane <…>".
    return " ".join(words) if len(words) >= 2 or (words and bracketed) else None


def _are_name(words: list[str]) -> bool:
    """Whether the words are capitalised, apart from particles such as "van" between them."""
    return all(
        _WORD.fullmatch(word) and word.lower() not in _NOT_NAMES and (word[0].isupper() or word in _PARTICLES)
        for word in words
    )
