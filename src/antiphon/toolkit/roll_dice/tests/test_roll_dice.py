import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.roll_dice.handler import execute
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult
from antiphon.words.dice import Dice, parse_dice


async def roll(dice: str, seed: int = 7) -> ToolResult:
    return await execute({"dice": dice}, make_context(seed=seed))


@pytest.mark.parametrize(
    ("said", "dice"),
    [
        ("d6", Dice(1, 6)),
        ("2d6", Dice(2, 6)),
        ("D20", Dice(1, 20)),
        ("2 d 6", Dice(2, 6)),
        ("3d6+2", Dice(3, 6, 2)),
        ("d20 - 1", Dice(1, 20, -1)),
        ("d%", Dice(1, 100)),
        ("dice", Dice(1, 6)),
        ("a die", Dice(1, 6)),
        ("two dice", Dice(2, 6)),
        ("a pair of dice", Dice(2, 6)),
        ("three six-sided dice", Dice(3, 6)),
        ("3 6-sided dice", Dice(3, 6)),
        ("a twenty sided die", Dice(1, 20)),
        ("five twenty-sided dice", Dice(5, 20)),
        ("twenty five six sided dice", Dice(25, 6)),
        ("three", Dice(3, 6)),
        ("two of them", Dice(2, 6)),
        ("a d12", Dice(1, 12)),
        ("an eight sided one", Dice(1, 8)),
    ],
)
def test_dice_are_understood_in_notation_and_in_words(said: str, dice: Dice) -> None:
    assert parse_dice(said) == dice


@pytest.mark.parametrize("said", ["banana", "d", "dd6", "2d", "half a dice", "d6d6", "2d6+", "roll", "d6; import os"])
async def test_what_is_not_dice_is_refused_with_advice(said: str) -> None:
    error = (await roll(said)).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == "I don't know how to roll that."
    assert error.suggestion is not None


@pytest.mark.parametrize("said", ["0d6", "101d6", "d1", "d0", "d1001", "d6+1000001", "9999d99999"])
async def test_too_many_dice_or_sides_are_refused(said: str) -> None:
    error = (await roll(said)).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == "I can roll up to 100 dice with 2 to 1,000 sides."


async def test_each_roll_is_within_the_sides_and_the_total_is_their_sum() -> None:
    data = (await roll("100d6+5")).data
    assert len(data["rolls"]) == 100
    assert set(data["rolls"]) == {1, 2, 3, 4, 5, 6}
    assert data["total"] == sum(data["rolls"]) + 5
    assert data["dice"] == "100d6+5"


async def test_one_die_is_said_as_a_number() -> None:
    result = await roll("d6", seed=2)
    assert result.spoken == f"You rolled a {result.data['total']}."


async def test_several_dice_are_said_with_their_total() -> None:
    result = await roll("2d6+3")
    first, second = result.data["rolls"]
    assert result.spoken == f"You rolled {first} and {second} plus 3, which makes {result.data['total']}."


async def test_of_many_dice_only_the_total_is_said() -> None:
    result = await roll("20d6")
    assert result.spoken == f"You rolled a total of {result.data['total']}."


async def test_a_number_that_begins_with_a_vowel_gets_its_article() -> None:
    rolls = [await roll("d20", seed) for seed in range(60)]
    said = {result.data["total"]: result.spoken for result in rolls}
    assert said[8] == "You rolled an 8."
    assert said[11] == "You rolled an 11."
    assert said[18] == "You rolled an 18."
