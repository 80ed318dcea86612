import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.testing import make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.get_day_of_week import handler
from antiphon.toolkit.get_day_of_week.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType
from antiphon.words.dates import parse_date

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
SENTENCES = yaml.safe_load((FOLDER / "sentences.yaml").read_text())


def hear(said: str) -> dict[str, Any] | None:
    match = Matcher(parse("get_day_of_week", SENTENCES).templates).match(Phrase(said), {"get_day_of_week"})
    return match.args if match else None


async def test_a_date_has_a_weekday() -> None:
    result = await execute({"date": "2026-07-04"}, make_context())
    assert result.data == {"date": "2026-07-04", "weekday": "Saturday"}
    assert result.spoken == "That is Saturday, July 4th."


async def test_a_past_date_is_spoken_in_the_past_tense() -> None:
    result = await execute({"date": "July 4th, 1976"}, make_context())
    assert result.spoken == "That was Sunday, July 4th, 1976."


async def test_a_holiday_has_a_date_and_a_weekday() -> None:
    result = await execute({"date": "Easter next year"}, make_context())
    assert result.data == {"date": "2027-03-28", "weekday": "Sunday"}


async def test_a_leap_day_has_a_weekday() -> None:
    result = await execute({"date": "2028-02-29"}, make_context())
    assert result.data["weekday"] == "Tuesday"


@pytest.mark.parametrize("text", ["banana", "February 29th, 2027", "Friday, July 4th", "6 pm"])
async def test_text_that_is_not_a_day_is_refused_with_advice(text: str) -> None:
    error = (await execute({"date": text}, make_context())).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == f"I don't know which day {text} is."
    assert error.suggestion is not None


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({"date": "9999-12-31"}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("what day of the week is July 4th", "2026-07-04"),
        ("what day of the week is it", "2026-01-01"),
        ("what day is Christmas", "2026-12-25"),
        ("what day is july fourth", "2026-07-04"),
        ("what day is the fourth of july", "2026-07-04"),
        ("what day was july 4th 1976", "1976-07-04"),
        ("what day is the fourth of july twenty thirty", "2030-07-04"),
        ("What day does Halloween fall on?", "2026-10-31"),
        ("when is easter", "2026-04-05"),
        ("when is thanksgiving next year", "2027-11-25"),
        ("when is the next friday the 13th", "2026-02-13"),
        ("what day is it tomorrow", "2026-01-02"),
        ("what's the date tomorrow", "2026-01-02"),
    ],
)
async def test_the_tool_is_matched_by_its_sentences(said: str, day: str) -> None:
    args = hear(said)
    assert args is not None
    assert (await execute(args, make_context())).data["date"] == day


@pytest.mark.parametrize("said", ["what day is it", "what day is it today", "what day is 45 days from now"])
def test_the_questions_of_other_tools_are_left_to_them(said: str) -> None:
    assert hear(said) is None


def test_every_occasion_in_the_sentences_is_known() -> None:
    names = [value["out"] for value in SENTENCES["lists"]["occasion"]["values"]]
    unknown = [name for name in names if parse_date(name, date(2026, 1, 1)) is None]
    assert not unknown


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("is it Friday today", {"date": "today", "expected": "Friday"}),
        ("is today a Thursday", {"date": "today", "expected": "Thursday"}),
        ("is tomorrow a Monday", {"date": "tomorrow", "expected": "Monday"}),
        ("is Christmas on a Friday this year", {"date": "Christmas", "expected": "Friday"}),
        ("what's the date next Friday", {"date": "next friday"}),
        ("what date is it on monday", {"date": "monday"}),
        ("what is the day after tomorrow", {"date": "the day after tomorrow"}),
    ],
)
def test_weekdays_and_near_days_are_matched(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args


@pytest.mark.parametrize(
    ("day", "expected", "spoken"),
    [
        ("today", "Thursday", "Yes, today is Thursday, January 1st."),
        ("today", "Friday", "No, today is Thursday, January 1st."),
        ("Christmas", "Friday", "Yes, that is Friday, December 25th."),
        ("yesterday", "Monday", "No, that was Wednesday, December 31st, 2025."),
    ],
)
async def test_a_question_about_a_weekday_is_answered_with_yes_or_no(day: str, expected: str, spoken: str) -> None:
    result = await execute({"date": day, "expected": expected}, make_context())
    assert result.spoken == spoken
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)
