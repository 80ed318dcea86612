import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.testing import StillClock, make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.time_until import handler
from antiphon.toolkit.time_until.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType, ToolError

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
BEFORE_DST_MS = 1_772_902_800_000
"""2026-03-07 12:00 in New York, the day before summer time starts."""


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("time_until", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"time_until"})
    return match.args if match else None


async def test_a_day_is_counted_in_days() -> None:
    result = await execute({"target_date": "Christmas"}, make_context(zone="Europe/Berlin"))
    assert result.data == {
        "target": "2026-12-25",
        "has_time": False,
        "days": 358,
        "seconds": 30_884_400,
        "past": False,
    }
    assert result.spoken == "It's 358 days until Friday, December 25th."


@pytest.mark.parametrize(
    ("target", "spoken"),
    [
        ("today", "That is today, Thursday, January 1st."),
        ("new year", "That is today, Thursday, January 1st."),
        ("friday", "That is tomorrow, Friday, January 2nd."),
        ("yesterday", "That was yesterday, Wednesday, December 31st, 2025."),
        ("2025-12-22", "That was 10 days ago, on Monday, December 22nd, 2025."),
    ],
)
async def test_days_near_today_are_named(target: str, spoken: str) -> None:
    assert (await execute({"target_date": target}, make_context())).spoken == spoken


async def test_today_is_not_over_yet() -> None:
    result = await execute({"target_date": "today"}, make_context())
    assert result.data["days"] == 0
    assert result.data["past"] is False


@pytest.mark.parametrize(
    ("target", "spoken"),
    [
        ("tomorrow at 6 pm", "It's 1 day and 6 hours until 6 PM tomorrow."),
        ("tomorrow at six", "It's 1 day and 6 hours until 6 PM tomorrow."),
        ("6:30 pm", "It's 6 hours and 30 minutes until 6:30 PM."),
        ("midnight", "It's 12 hours until midnight tonight."),
        ("in ten minutes", "It's 10 minutes until 12:10 PM."),
        ("friday next week at noon", "It's 8 days until noon on Friday, January 9th."),
        ("2026-01-01T10:00:00Z", "That was 2 hours ago, at 10 AM."),
    ],
)
async def test_a_moment_is_counted_in_hours_and_minutes(target: str, spoken: str) -> None:
    assert (await execute({"target_date": target}, make_context())).spoken == spoken


async def test_a_moment_is_returned_with_its_offset() -> None:
    result = await execute({"target_date": "tomorrow at 6 pm"}, make_context(zone="Europe/Berlin"))
    assert result.data["target"] == "2026-01-02T18:00:00+01:00"
    assert result.data["seconds"] == 29 * 3600


async def test_the_night_to_summer_time_is_an_hour_shorter() -> None:
    context = make_context(zone="America/New_York", clock=StillClock(BEFORE_DST_MS))
    result = await execute({"target_date": "tomorrow at noon"}, context)
    assert result.data["seconds"] == 23 * 3600
    assert result.spoken == "It's 23 hours until noon tomorrow."


async def test_a_leap_day_is_counted() -> None:
    february = await execute({"target_date": "2028-02-28"}, make_context())
    march = await execute({"target_date": "2028-03-01"}, make_context())
    assert march.data["days"] - february.data["days"] == 2


@pytest.mark.parametrize("target", ["0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
async def test_the_ends_of_the_calendar_can_be_counted_to(target: str, zone: str) -> None:
    result = await execute({"target_date": target}, make_context(zone=zone))
    assert result.data["target"] == target


@pytest.mark.parametrize("target", ["banana", "my next meeting", "in 9999 years", "February 30th"])
async def test_text_that_is_not_a_time_is_refused_with_advice(target: str) -> None:
    with pytest.raises(ToolError) as caught:
        await execute({"target_date": target}, make_context())
    error = caught.value
    assert error.type is ErrorType.VALIDATION
    assert error.message == f"I don't know when {target} is."
    assert error.suggestion is not None


@pytest.mark.parametrize("target", ["Easter", "tomorrow at noon", "1969-07-20"])
async def test_the_data_matches_the_output_schema(target: str) -> None:
    result = await execute({"target_date": target}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ("how many days until Christmas", "Christmas"),
        ("how many days are there till christmas", "christmas"),
        ("how long until new year", "new year"),
        ("how long until new year's", "new year's"),
        ("how long is it until friday", "friday"),
        ("how long till midnight", "midnight"),
        ("how much time is left until the fourth of july", "the fourth of july"),
        ("how long until tomorrow at six", "tomorrow at six"),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, target: str) -> None:
    heard = hear(said)
    assert heard is not None
    assert heard["target_date"] == target


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("how many weeks until Christmas", {"target_date": "Christmas", "unit": "weeks"}),
        ("how many days since January 1st", {"target_date": "January 1st", "unit": "days", "since": True}),
        ("how long has it been since my birthday", {"target_date": "my birthday", "since": True}),
        ("how long ago was Christmas", {"target_date": "Christmas", "since": True}),
        ("days between March 3 and May 9", {"from_date": "March 3", "target_date": "May 9", "unit": "days"}),
        (
            "how many hours are there from 9 am to 5 pm",
            {"from_date": "9 am", "target_date": "5 pm", "unit": "hours"},
        ),
        ("how many days are left this year", {"target_date": "the end of the year", "unit": "days"}),
    ],
)
def test_lengths_are_asked_for_in_many_ways(said: str, args: dict[str, Any]) -> None:
    assert hear(said) == args


@pytest.mark.parametrize(
    ("args", "spoken"),
    [
        ({"target_date": "Christmas", "unit": "weeks"}, "It's 51 weeks and 1 day until Friday, December 25th."),
        ({"target_date": "Christmas", "unit": "months"}, "It's 11 months and 24 days until Friday, December 25th."),
        ({"target_date": "2030-03-01", "unit": "years"}, "It's 4 years and 2 months until Friday, March 1st, 2030."),
        ({"target_date": "tomorrow", "unit": "hours"}, "It's 11 hours until Friday, January 2nd."),
        ({"target_date": "January 10th", "unit": "minutes"}, "It's 12,180 minutes until Saturday, January 10th."),
        ({"target_date": "6:30 pm", "unit": "hours"}, "It's 5 hours and 30 minutes until 6:30 PM."),
        ({"target_date": "Christmas", "since": True}, "That was 7 days ago, on Thursday, December 25th, 2025."),
        (
            {"target_date": "January 2nd", "since": True, "unit": "months"},
            "That was 11 months and 30 days ago, on Thursday, January 2nd, 2025.",
        ),
        ({"target_date": "2000-01-01"}, "That was 26 years ago, on Saturday, January 1st, 2000."),
        ({"target_date": "Monday", "since": True}, "That was 3 days ago, on Monday, December 29th, 2025."),
        ({"target_date": "9 am", "since": True}, "That was 4 hours ago, at 9 AM."),
        (
            {"from_date": "March 3", "target_date": "May 9"},
            "It's 67 days from Tuesday, March 3rd to Saturday, May 9th.",
        ),
        (
            {"from_date": "Christmas", "target_date": "New Year", "unit": "weeks"},
            "It's 1 week from Friday, December 25th to Friday, January 1st, 2027.",
        ),
        ({"from_date": "2 pm", "target_date": "5:15 pm"}, "It's 3 hours and 15 minutes from 2 PM to 5:15 PM."),
        (
            {"from_date": "2026-05-09", "target_date": "2026-03-03"},
            "It's 67 days from Saturday, May 9th to Tuesday, March 3rd.",
        ),
    ],
)
async def test_lengths_are_told_in_the_unit_that_was_asked_for(args: dict[str, Any], spoken: str) -> None:
    result = await execute(args, make_context(zone="Europe/Berlin"))
    assert result.spoken == spoken
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)
