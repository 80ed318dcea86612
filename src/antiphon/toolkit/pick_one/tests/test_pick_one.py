from typing import Any

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.pick_one.handler import execute, split_options
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult


async def pick(options: Any, seed: int = 7) -> ToolResult:
    return await execute({"options": options}, make_context(seed=seed))


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("pizza or sushi", ["pizza", "sushi"]),
        ("pizza and sushi", ["pizza", "sushi"]),
        ("pizza, sushi or tacos", ["pizza", "sushi", "tacos"]),
        ("pizza, sushi, and tacos", ["pizza", "sushi", "tacos"]),
        ("fish and chips or pizza", ["fish and chips", "pizza"]),
        ("orange", ["orange"]),
        (", ,", []),
    ],
)
def test_a_text_is_split_as_people_say_options(said: str, options: list[str]) -> None:
    assert [option for option in split_options(said) if option] == options or split_options(said) == options


async def test_every_option_can_be_picked() -> None:
    picked = {(await pick(["a", "b", "c"], seed)).data["picked"] for seed in range(50)}
    assert picked == {"a", "b", "c"}


async def test_the_pick_is_said() -> None:
    result = await pick("tea or coffee")
    assert result.spoken == f"I pick {result.data['picked']}."


async def test_an_option_given_twice_counts_once() -> None:
    assert (await pick(["Tea", "tea ", "coffee"])).data["options"] == ["Tea", "coffee"]


@pytest.mark.parametrize("options", [["tea", "TEA"], ["tea", " "], "tea", ", ,", "or"])
async def test_fewer_than_two_options_are_refused(options: Any) -> None:
    error = (await pick(options)).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == "I need at least two different things to choose from."


@pytest.mark.parametrize("options", [",".join(map(str, range(51))), f"tea or {'x' * 201}"])
async def test_too_many_or_too_long_options_are_refused(options: str) -> None:
    error = (await pick(options)).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
