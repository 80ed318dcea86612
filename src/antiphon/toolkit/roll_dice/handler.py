"""Rolls dice."""

from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dice import Dice, parse_dice
from antiphon.words.lists import enumerate_words

MAX_DICE: Final = 100
MIN_SIDES: Final = 2
MAX_SIDES: Final = 1_000
MAX_ADDED: Final = 1_000_000
MAX_ROLLS_SAID: Final = 6


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


def _speak(dice: Dice, rolls: list[int], total: int) -> str:
    if dice.count == 1 and not dice.added:
        return f"You rolled {_article(rolls[0])} {rolls[0]}."
    if len(rolls) > MAX_ROLLS_SAID:
        return f"You rolled a total of {total:,}."
    added = f" {'plus' if dice.added > 0 else 'minus'} {abs(dice.added):,}" if dice.added else ""
    return f"You rolled {enumerate_words([str(roll) for roll in rolls])}{added}, which makes {total:,}."


def _article(number: int) -> str:
    return "an" if str(number).startswith("8") or number in (11, 18) else "a"
