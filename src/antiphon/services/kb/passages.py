"""Splits the body of a record into passages: a search finds passages, and a person reads records.

A passage is short enough to be embedded as a whole and to be about one thing. Every character of the body is in
exactly one passage, so that the passages, joined, are the body.
"""

import re
from collections.abc import Iterator
from typing import Final

MOST_CHARS: Final = 900
"""The embedding model reads 256 tokens, which are about 1,000 characters."""
FEWEST_CHARS: Final = 200
"""A shorter paragraph is joined with the next one."""

_HEADING: Final = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_PARAGRAPH: Final = re.compile(r"(?<=\n)\s*\n+")
_SENTENCE: Final = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_WORD: Final = re.compile(r"\s+")


def split(body: str) -> list[str]:
    """Splits a body at headings, then at paragraphs, sentences and words, as far as necessary."""
    found: list[str] = []
    for section in _cut(body, _HEADING):
        found += _join(_shorten(section, (_PARAGRAPH, _SENTENCE, _WORD)))
    return _join_headings(found) or [body]


def _shorten(text: str, separators: tuple[re.Pattern[str], ...]) -> Iterator[str]:
    if len(text) <= MOST_CHARS:
        yield text
    elif not separators:
        yield from (text[start : start + MOST_CHARS] for start in range(0, len(text), MOST_CHARS))
    else:
        for piece in _cut(text, separators[0]):
            yield from _shorten(piece, separators[1:])


def _cut(text: str, separator: re.Pattern[str]) -> Iterator[str]:
    """Cuts a text after each separator, or before it if it is empty."""
    start = 0
    for match in separator.finditer(text):
        if match.end() > start:
            yield text[start : match.end()]
            start = match.end()
    if start < len(text):
        yield text[start:]


def _join(pieces: Iterator[str]) -> Iterator[str]:
    """Joins neighbours as long as they fit."""
    held = ""
    for piece in pieces:
        if held and len(held) + len(piece) > MOST_CHARS:
            yield held
            held = ""
        held += piece
    if held:
        yield held


def _join_headings(pieces: list[str]) -> list[str]:
    """Joins what is too short to stand alone, such as a heading without text, with what follows it."""
    joined: list[str] = []
    for piece in pieces:
        if joined and len(joined[-1]) < FEWEST_CHARS and len(joined[-1]) + len(piece) <= MOST_CHARS:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined
