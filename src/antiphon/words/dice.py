"""How people name the dice to roll: "two dice", "a d20", "three eight-sided ones"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.words.numbers import parse_number

DEFAULT_SIDES: Final = 6

_NOTATION: Final = re.compile(r"(\d{0,4})\s*d\s*(\d{1,5}|%)\s*(?:([+-])\s*(\d{1,7}))?", re.IGNORECASE | re.ASCII)
_WORDS: Final = re.compile(
    r"(?P<before>.*?)[\s-]*\b(?:(?:of )?(?:the )?(?:dice|die)|ones?|of (?:them|those|these))", re.IGNORECASE
)
_SIDED: Final = re.compile(r"[\s-]+sided$", re.IGNORECASE)
_NAMED: Final = {
    "a pair of": 2,
    "a pair": 2,
    "some": 2,
    "the": 1,
    "another": 1,
    "a couple of": 2,
    "a couple": 2,
    "both": 2,
}

_NUMBER: Final = r"[a-z]+(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?"
_COUNT: Final = rf"(?:\d{{1,3}}|a pair(?: of)?|a couple(?: of)?|an?|another|{_NUMBER})"
_SIDES: Final = rf"(?:\d{{1,4}}|{_NUMBER})[ -]sided"
_FOUND: Final = re.compile(
    rf"\b(?:(?:(?P<count>{_COUNT}) )?(?P<sides>{_SIDES})(?: (?:dice|die|ones?))?|(?P<number>{_COUNT}) (?:dice|die)|"
    r"(?P<notation>(?:\d{1,3}|an?|[a-z]+)? ?d ?\d{1,4}(?: ?[+-] ?\d{1,4})?)|"
    r"(?:roll|throw|cast|chuck) (?:me )?(?P<bare>[a-z]+|\d{1,2})(?=[\s.!?]*\Z|[,.!?]| (?:please|for|and|"
    r"again)\b))(?![\w-])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Dice:
    count: int
    sides: int
    added: int = 0

    def __str__(self) -> str:
        return f"{self.count if self.count > 1 else ''}d{self.sides}{f'{self.added:+}' if self.added else ''}"


def parse_dice(said: str) -> Dice | None:
    """Parses dice in the notation of games, or in words; None if they are neither. A number alone is how many."""
    text = " ".join(said.strip(" .?!").split())
    counted = re.match(r"([a-z]+)\s+(?=d\s*\d)", text, re.IGNORECASE)
    if counted is not None and (number := _read(counted[1])) is not None:
        text = f"{number}{text[counted.end() :]}"
    if match := _NOTATION.fullmatch(text):
        count, sides, sign, added = match.groups()
        return Dice(int(count or 1), 100 if sides == "%" else int(sides), int(f"{sign or ''}{added or 0}"))
    match = _WORDS.fullmatch(text)
    if match is None and parse_number(text) is None and _SIDED.search(text) is None:
        return None
    return _read_words(text if match is None else match["before"])


def find_dice(text: str) -> Sequence[tuple[str, int, int]]:
    """Finds dice in a sentence, and where they are: "roll for initiative with a twenty sided die"."""
    found = []
    for match in _FOUND.finditer(text):
        for said in (match[0], match["sides"], match["bare"]):
            if said and not said.lower().startswith("the ") and parse_dice(said) is not None:
                found.append((said, match.end() - len(said), match.end()))
                break
    return found


def _read_words(before: str) -> Dice | None:
    """Reads a number of dice, of sides, or of both ("three six-sided")."""
    described = _SIDED.sub("", before)
    if described == before:
        count = _read(before or "a")
        return None if count is None else Dice(count, DEFAULT_SIDES)
    words = described.split()
    # The number of dice comes first. "Twenty five six-sided dice" can only be split in one place.
    for place in [*range(1, len(words)), 0]:
        count, sides = _read(" ".join(words[:place]) or "a"), _read(" ".join(words[place:]))
        if count is not None and sides is not None:
            return Dice(count, sides)
    return None


def _read(words: str) -> int | None:
    words = words.lower()
    if words in ("a", "an"):
        return 1
    value = _NAMED.get(words, parse_number(words))
    return value if isinstance(value, int) else None
