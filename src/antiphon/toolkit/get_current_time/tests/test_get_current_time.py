import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.testing import StillClock, make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.get_current_time import handler
from antiphon.toolkit.get_current_time.handler import execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType, ToolError

FOLDER = Path(handler.__file__).parent
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
JULY_MS = 1_783_080_600_000
"""2026-07-03 12:10 UTC."""


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("get_current_time", yaml.safe_load((FOLDER / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"get_current_time"})
    return match.args if match else None


async def test_without_a_place_it_is_the_users_own_time() -> None:
    result = await execute({}, make_context(zone="Europe/Berlin"))
    assert result.data == {
        "iso": "2026-01-01T13:00:00+01:00",
        "time": "13:00",
        "timezone": "Europe/Berlin",
        "place": "Berlin",
    }
    assert result.spoken == "It's 1 PM."


async def test_a_city_has_its_own_time() -> None:
    result = await execute({"timezone": "Tokyo"}, make_context())
    assert result.data["iso"] == "2026-01-01T21:00:00+09:00"
    assert result.spoken == "It's 9 PM in Tokyo."


async def test_a_place_is_called_by_the_name_that_was_asked_for() -> None:
    result = await execute({"timezone": "san francisco"}, make_context())
    assert result.data["timezone"] == "America/Los_Angeles"
    assert result.spoken == "It's 4 AM in San Francisco."


async def test_a_different_day_in_another_place_is_mentioned() -> None:
    result = await execute({"timezone": "Sydney"}, make_context(clock=StillClock(JULY_MS + 3 * 3_600_000)))
    assert result.spoken == "It's 1:10 AM on Saturday in Sydney."


async def test_summer_time_counts_in_summer_only() -> None:
    winter = await execute({"timezone": "New York"}, make_context())
    summer = await execute({"timezone": "New York"}, make_context(clock=StillClock(JULY_MS)))
    assert winter.data["time"] == "07:00"
    assert summer.data["time"] == "08:10"


async def test_eastern_standard_time_means_the_clocks_of_new_york_in_summer_too() -> None:
    result = await execute({"timezone": "EST"}, make_context(clock=StillClock(JULY_MS)))
    assert result.spoken == "It's 8:10 AM in EST."


@pytest.mark.parametrize("place", ["Atlantis", "Australia"])
async def test_a_place_without_one_zone_is_refused_with_advice(place: str) -> None:
    with pytest.raises(ToolError) as caught:
        await execute({"timezone": place}, make_context())
    error = caught.value
    assert error.type is ErrorType.VALIDATION
    assert error.message == f"I don't know one time zone for {place}."
    assert error.suggestion is not None


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({"timezone": "UTC"}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("what time is it", {}),
        ("What's the time?", {}),
        ("do you know what time it is", {}),
        ("what time is it in Tokyo", {"timezone": "Tokyo"}),
        ("whats the time in new york", {"timezone": "new york"}),
        (
            "what's the time difference between London and New York",
            {"timezone": "London", "compared_with": "New York"},
        ),
        ("how far ahead is Tokyo", {"timezone": "Tokyo", "compared_with": "here"}),
        ("how many hours behind is New York", {"timezone": "New York", "compared_with": "here"}),
        ("how many hours is Tokyo ahead of London", {"timezone": "Tokyo", "compared_with": "London"}),
        ("is Lima behind Boston", {"timezone": "Boston", "compared_with": "Lima"}),
    ],
)
def test_the_tool_is_matched_by_its_sentences(said: str, args: dict[str, str]) -> None:
    assert hear(said) == args


async def test_words_after_the_place_are_not_part_of_it() -> None:
    args = hear("what time is it in San Francisco right now?")
    assert args is not None
    assert (await execute(args, make_context())).spoken == "It's 4 AM in San Francisco."


@pytest.mark.parametrize(
    ("places", "spoken"),
    [
        ("Tokyo and London", "It's 9 PM in Tokyo and noon in London."),
        ("Tokyo and in London", "It's 9 PM in Tokyo and noon in London."),
        ("Trinidad and Tobago", "It's 8 AM in Trinidad and Tobago."),
        ("Paris, New York and Delhi", "It's 1 PM in Paris, 7 AM in New York, and 5:30 PM in Delhi."),
    ],
)
async def test_several_places_are_told_in_one_sentence(places: str, spoken: str) -> None:
    result = await execute({"timezone": places}, make_context())
    assert result.spoken == spoken
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("place", "other", "spoken", "minutes"),
    [
        ("London", "New York", "London is 5 hours ahead of New York.", 300),
        ("New York", "London", "New York is 5 hours behind London.", -300),
        ("Tokyo", "here", "Tokyo is 8 hours ahead of you.", 480),
        ("Delhi", "London", "Delhi is 5 hours and 30 minutes ahead of London.", 330),
        ("Paris", "Rome", "Paris has the same time as Rome.", 0),
    ],
)
async def test_the_clocks_of_two_places_are_compared(place: str, other: str, spoken: str, minutes: int) -> None:
    args = {"timezone": place, "compared_with": other}
    result = await execute(args, make_context(zone="Europe/Berlin"))
    assert result.spoken == spoken
    assert result.data["minutes_ahead"] == minutes
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


async def test_the_difference_is_that_of_today() -> None:
    summer = await execute({"timezone": "London", "compared_with": "UTC"}, make_context(clock=StillClock(JULY_MS)))
    assert summer.data["minutes_ahead"] == 60
