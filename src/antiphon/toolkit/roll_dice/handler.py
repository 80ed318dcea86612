"""Rolls dice."""

import re
from dataclasses import dataclass
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.lists import enumerate_words
from antiphon.words.numbers import parse_number

MAX_DICE: Final = 100
DEFAULT_SIDES: Final = 6
MIN_SIDES: Final = 2
MAX_SIDES: Final = 1_000
MAX_ADDED: Final = 1_000_000
MAX_ROLLS_SAID: Final = 6

_NOTATION: Final = re.compile(r"(\d{0,4})\s*d\s*(\d{1,5}|%)\s*(?:([+-])\s*(\d{1,7}))?", re.IGNORECASE | re.ASCII)
_WORDS: Final = re.compile(r"(?P<before>.*?)[\s-]*\b(?:dice|die)", re.IGNORECASE)
_SIDED: Final = re.compile(r"[\s-]+sided$", re.IGNORECASE)
_NAMED: Final = {"a pair of": 2, "some": 2, "the": 1, "another": 1, "a couple of": 2}


@dataclass(frozen=True, slots=True)
class Dice:
    count: int
    sides: int
    added: int = 0

    def __str__(self) -> str:
        return f"{self.count if self.count > 1 else ''}d{self.sides}{f'{self.added:+}' if self.added else ''}"


async def execute(args: Args, context: Context) -> ToolResult:
    dice = parse_dice(args["dice"])
    if dice is None:
        return fail(
            ErrorType.VALIDATION,
            "I don't know how to roll that.",
            suggestion='Write the dice as "2d6" or "d20", or in words: "three six-sided dice".',
        )
    if not (1 <= dice.count <= MAX_DICE and MIN_SIDES <= dice.sides <= MAX_SIDES and abs(dice.added) <= MAX_ADDED):
        return fail(
            ErrorType.VALIDATION,
            f"I can roll up to {MAX_DICE} dice with {MIN_SIDES} to {MAX_SIDES:,} sides.",
            suggestion="Choose fewer dice, or dice with fewer sides.",
        )
    rolls = [context.rng.randint(1, dice.sides) for _ in range(dice.count)]
    total = sum(rolls) + dice.added
    return ok({"dice": str(dice), "rolls": rolls, "total": total}, spoken=_speak(dice, rolls, total))


def parse_dice(said: str) -> Dice | None:
    """Parses dice in the notation of games, or in words; None if they are neither."""
    text = " ".join(said.strip(" .?!").split())
    if match := _NOTATION.fullmatch(text):
        count, sides, sign, added = match.groups()
        return Dice(int(count or 1), 100 if sides == "%" else int(sides), int(f"{sign or ''}{added or 0}"))
    match = _WORDS.fullmatch(text)
    return None if match is None else _read_words(match["before"])


def _read_words(before: str) -> Dice | None:
    """Reads what comes before "dice": a number of dice, of sides, or of both ("three six-sided")."""
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


def _speak(dice: Dice, rolls: list[int], total: int) -> str:
    if dice.count == 1 and not dice.added:
        return f"You rolled {_article(rolls[0])} {rolls[0]}."
    if len(rolls) > MAX_ROLLS_SAID:
        return f"You rolled a total of {total:,}."
    added = f" {'plus' if dice.added > 0 else 'minus'} {abs(dice.added):,}" if dice.added else ""
    return f"You rolled {enumerate_words([str(roll) for roll in rolls])}{added}, which makes {total:,}."


def _article(number: int) -> str:
    return "an" if str(number).startswith("8") or number in (11, 18) else "a"
