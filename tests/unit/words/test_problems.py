"""Word problems become sums that a calculator reads."""

import pytest

from antiphon.words.problems import read_problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("split a bill of 120 four ways", "split 120 4 ways"),
        ("the bill is 96 euros and there are three of us, how much each", "split 96 euros 3 ways"),
        ("split 80 pounds between 2 people with a 10 percent tip", "split 80 pounds with a 10 percent tip 2 ways"),
        ("dinner was 64 dollars, what should I leave as a tip at 18 percent", "18 percent tip on 64 dollars"),
        ("a shirt is 40 quid with 25 percent off, what do I pay", "25 percent off 40 quid"),
        ("the price went up from $200 to $250, what percentage is that", "percent change from 200 to 250"),
        ("add 8 percent tax to 150", "150 plus 8 percent"),
        ("what's twenty percent VAT on 240 pounds", "20 percent of 240 pounds"),
        ("I got 43 out of 50 on my test, what percent is that", "43 is what percent of 50"),
        ("how much do three coffees at 4.20 each cost", "3 times 4.20"),
        ("what do you get if you add nineteen and twenty three", "19 plus 23"),
        ("eight hundred and twelve take away ninety nine", "812 minus 99"),
        ("what do six lots of fourteen come to", "6 times 14"),
        # Not every number has a place.
        ("split 120 four ways on the 5th", None),
        ("I have 2 meetings at 5", None),
        ("add 2 and 3 times 4", None),
        ("what is the tip of the iceberg", None),
        ("there are three of us", None),
    ],
)
def test_a_problem_is_read_if_all_of_its_numbers_are(text: str, problem: str | None) -> None:
    assert read_problem(text) == problem
