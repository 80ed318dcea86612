import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.testing import StillClock, make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.calculate_date import handler
from antiphon.toolkit.calculate_date.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("calculate_date", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"calculate_date"})
    return match.args if match else None


async def test_days_are_counted_from_today() -> None:
    result = await execute({"days": 10}, make_context())
    assert result.data == {"date": "2026-01-11", "weekday": "Sunday", "from_date": "2026-01-01"}
    assert result.spoken == "That is Sunday, January 11th."


async def test_today_is_the_users_own_day() -> None:
    # 2026-01-01 23:00 UTC is already the 2nd in Tokyo.
    result = await execute({"days": 0}, make_context(zone="Asia/Tokyo", clock=StillClock(1_767_308_400_000)))
    assert result.data["date"] == "2026-01-02"


async def test_negative_days_go_back() -> None:
    result = await execute({"days": -1}, make_context())
    assert result.spoken == "That was Wednesday, December 31st, 2025."


async def test_days_are_counted_from_a_date_in_words() -> None:
    result = await execute({"days": 90, "from_date": "March 1st"}, make_context())
    assert result.data == {"date": "2026-05-30", "weekday": "Saturday", "from_date": "2026-03-01"}


@pytest.mark.parametrize(("year", "day"), [(2027, "2027-03-01"), (2028, "2028-02-29")])
async def test_february_has_29_days_in_leap_years(year: int, day: str) -> None:
    result = await execute({"days": 1, "from_date": f"{year}-02-28"}, make_context())
    assert result.data["date"] == day


@pytest.mark.parametrize(("days", "start"), [(1, "9999-12-31"), (-1, "0001-01-01"), (36_500, "9950-06-01")])
async def test_a_date_beyond_the_calendar_is_refused(days: int, start: str) -> None:
    error = (await execute({"days": days, "from_date": start}, make_context())).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == "That date is outside the calendar I know."


@pytest.mark.parametrize("start", ["banana", "February 30th", "in 9999 years"])
async def test_a_start_that_is_not_a_date_is_refused_with_advice(start: str) -> None:
    error = (await execute({"days": 1, "from_date": start}, make_context())).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.suggestion is not None


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({"days": -36_500}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("what is the date in ten days", "2026-01-11"),
        ("what's the date in 10 days?", "2026-01-11"),
        ("what date is 45 days from now", "2026-02-15"),
        ("what day is it in a hundred days", "2026-04-11"),
        ("what date will it be in two weeks", "2026-01-15"),
        ("what is the date in a month", "2026-02-01"),
        ("what date is ninety days after march first", "2026-05-30"),
        ("what date is three weeks before easter", "2026-03-15"),
        ("what was the date 3 weeks ago", "2025-12-11"),
    ],
)
async def test_the_tool_is_matched_by_its_sentences(said: str, date: str) -> None:
    args = hear(said)
    assert args is not None
    assert (await execute(args, make_context())).data["date"] == date
