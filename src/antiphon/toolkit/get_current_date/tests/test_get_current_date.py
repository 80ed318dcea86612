import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.testing import StillClock, make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.get_current_date import handler
from antiphon.toolkit.get_current_date.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType
from antiphon.words.zones import find_place

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
SENTENCES = yaml.safe_load((FOLDER / "sentences.yaml").read_text())
LATE_MS = 1_767_308_400_000
"""2026-01-01 23:00 UTC."""


def hear(said: str) -> dict[str, Any] | None:
    match = Matcher(parse("get_current_date", SENTENCES).templates).match(Phrase(said), {"get_current_date"})
    return match.args if match else None


async def test_without_a_place_it_is_the_users_own_date() -> None:
    result = await execute({}, make_context(zone="Europe/Berlin"))
    assert result.data == {
        "date": "2026-01-01",
        "weekday": "Thursday",
        "timezone": "Europe/Berlin",
        "place": "Berlin",
    }
    assert result.spoken == "Today is Thursday, January 1st, 2026."


async def test_far_enough_in_the_east_it_is_tomorrow_already() -> None:
    result = await execute({"timezone": "sydney"}, make_context(clock=StillClock(LATE_MS)))
    assert result.data["date"] == "2026-01-02"
    assert result.spoken == "In Sydney it's Friday, January 2nd, 2026."


async def test_the_users_own_zone_decides_when_the_day_ends() -> None:
    result = await execute({}, make_context(zone="Asia/Tokyo", clock=StillClock(LATE_MS)))
    assert result.data["date"] == "2026-01-02"


async def test_a_leap_day_is_a_day() -> None:
    result = await execute({}, make_context(clock=StillClock(1_835_395_200_000)))
    assert result.spoken == "Today is Tuesday, February 29th, 2028."


async def test_an_unknown_place_is_refused_with_advice() -> None:
    error = (await execute({"timezone": "Atlantis"}, make_context())).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.suggestion is not None


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({"timezone": "Honolulu"}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("what's the date", {}),
        ("What is today's date?", {}),
        ("what day is it today", {}),
        ("what day is it", {}),
        ("what year is it", {"about": "year"}),
        ("which month are we in", {"about": "month"}),
        ("what week is it", {"about": "week"}),
        ("is it a leap year", {"about": "leap_year"}),
        ("is 2028 a leap year", {"about": "leap_year", "year": 2028}),
        ("what date is it in Sydney", {"timezone": "Sydney"}),
        ("whats the date in new york", {"timezone": "New York"}),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args


def test_a_number_of_days_is_not_a_place() -> None:
    assert hear("what is the date in ten days") is None


def test_every_place_in_the_sentences_is_known() -> None:
    unknown = [name for name in SENTENCES["lists"]["place"]["values"] if find_place(name) is None]
    assert not unknown


@pytest.mark.parametrize(
    ("args", "spoken"),
    [
        ({"about": "week"}, "It's week 1."),
        ({"about": "month"}, "It's January."),
        ({"about": "year", "timezone": "Sydney"}, "It's 2026 in Sydney."),
        ({"about": "leap_year"}, "No, 2026 isn't a leap year. The next one is 2028."),
        ({"about": "leap_year", "year": 2000}, "Yes, 2000 is a leap year."),
        ({"about": "leap_year", "year": 1900}, "No, 1900 isn't a leap year. The next one is 1904."),
    ],
)
async def test_a_part_of_the_date_is_told_alone(args: dict[str, Any], spoken: str) -> None:
    result = await execute(args, make_context())
    assert result.spoken == spoken
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)
