"""Writes prompts for pictures by rules. The same idea always gives the same prompts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from zlib import crc32

from .treatments import COMPOSITIONS, KINDS, LIGHTS, MEDIA, MOOD_WORDS, MOODS, PALETTES, TIMES, Medium

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Draft:
    prompt: str
    style: str


def draft(idea: str, style: str | None, count: int) -> list[Draft]:
    """Writes up to five prompts, which differ in everything that neither the idea nor the style decides."""
    idea = " ".join(idea.split()).rstrip(".!? ")
    named = _find_medium(style) if style else _find_medium(idea)
    start = crc32(f"{idea}\n{style or ''}".casefold().encode("utf-8", "replace"))
    media = _turned(MEDIA, start)
    compositions = _turned(COMPOSITIONS[_find(idea, KINDS) or "scene"], start)
    lights = _turned(LIGHTS[_find(idea, TIMES) or "day"], start)
    palettes, moods = _turned(PALETTES, start), _turned(MOODS, start)
    asked_mood = _find(idea, MOOD_WORDS)
    drafts = []
    for _, medium, composition, light, palette, mood in zip(
        range(count), media, compositions, lights, palettes, moods, strict=False
    ):
        name, described = _describe(style, named or (None if style else medium))
        parts = [
            f"{idea[:1].upper()}{idea[1:]}, as {described}.",
            f"Composition: {composition}.",
            f"Light: {light}.",
            f"Colours: {palette}.",
            f"Mood: {asked_mood or mood}.",
        ]
        drafts.append(Draft(" ".join(parts), name))
    return drafts


def _describe(style: str | None, medium: Medium | None) -> tuple[str, str]:
    """Returns the name of the medium and its description. A style that is not known is given in its own words."""
    if medium is None:
        assert style is not None
        name = " ".join(style.split())
        return name, f"a picture in this style: {name}"
    described = medium.described
    if style is not None and " ".join(style.split()).casefold() not in (medium.name, *medium.words):
        described = f"{described}, in this style: {' '.join(style.split())}"
    return medium.name, described


def _find_medium(text: str) -> Medium | None:
    return next((medium for medium in MEDIA if _has_word(text, medium.words)), None)


def _find(idea: str, words: Mapping[str, Sequence[str]]) -> str | None:
    return next((name for name, each in words.items() if _has_word(idea, each)), None)


def _has_word(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", folded) for word in words)


def _turned(choices: Sequence[Choice], start: int) -> Iterator[Choice]:
    """Gives the choices one after the other, again and again, from a place that depends on the idea."""
    place = start % len(choices)
    while True:
        yield choices[place]
        place = (place + 1) % len(choices)
