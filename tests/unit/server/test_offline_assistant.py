"""What the offline assistant makes of people's words, through `POST /api/chat`, with the built-in tools."""

from collections.abc import Callable

import pytest

from tests.fakes.web import Web

FIRST_SCREEN = {
    "What time is it in Tokyo?": "get_current_time",
    "What is the sum of 3, 4 and 12.5?": "calculate",
    "How many days until Christmas?": "time_until",
    "Tell me a joke": "tell_joke",
}
"""The examples that the page offers before anything was said, and the tool that answers each."""


@pytest.mark.parametrize(("said", "tool"), FIRST_SCREEN.items())
async def test_an_example_of_the_first_screen_is_answered(offline: Callable[[], Web], said: str, tool: str) -> None:
    answer = (await offline().chat(said)).json()
    assert [(run["name"], run["ok"]) for run in answer["toolCalls"]] == [(tool, True)]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("What is the sum of 3, 4 and 12.5", "3 plus 4 plus 12.5 is 19.5."),
        ("what's the sum of three, four and twelve point five?", "3 plus 4 plus 12.5 is 19.5."),
        ("sum of 1 2 and 3", "1 plus 2 plus 3 is 6."),
        ("what is the sum of one, two, three and four", "1 plus 2 plus 3 plus 4 is 10."),
        ("What is the total of 1,200 and 34.50?", "1,200 plus 34.5 is 1,234.5."),
        ("add 45 and 78", "45 plus 78 is 123."),
        ("add 1, 2 and 3.5", "1 plus 2 plus 3.5 is 6.5."),
        ("add 5 to 10", "5 plus 10 is 15."),
        ("add up 1, 2, 3 and 4.5", "1 plus 2 plus 3 plus 4.5 is 10.5."),
        ("the average of 3, 4 and 5", "The average of 3, 4 and 5 is 4."),
        ("what is the product of 2, 3 and 4?", "2 times 3 times 4 is 24."),
        ("what is the difference between 4 and 10", "10 minus 4 is 6."),
    ],
)
async def test_a_sum_can_be_asked_for_in_the_words_of_school(
    offline: Callable[[], Web], said: str, answer: str
) -> None:
    assert (await offline().chat(said)).json()["message"] == answer


async def test_a_difference_that_is_no_number_is_no_calculation(offline: Callable[[], Web]) -> None:
    answer = (await offline().chat("what is the difference between cats and dogs")).json()
    assert answer["toolCalls"] == []
