import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from antiphon.authoring.testing import make_context
from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.format_datetime import handler
from antiphon.toolkit.format_datetime.handler import Style, execute
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("short", "Mar 4, 2026, 4:10 PM"),
        ("long", "Wednesday, March 4, 2026 at 4:10 PM"),
        ("date", "March 4, 2026"),
        ("time", "4:10 PM"),
        ("iso", "2026-03-04T16:10:00+00:00"),
        ("spoken", "Wednesday, March 4th at 4:10 PM"),
    ],
)
async def test_each_style_has_its_form(style: str, text: str) -> None:
    result = await execute({"datetime": "2026-03-04T16:10:00Z", "style": style}, make_context())
    assert result.data["text"] == text


def test_the_schema_lists_every_style() -> None:
    assert SCHEMA["parameters"]["properties"]["style"]["enum"] == list(Style)


@pytest.mark.parametrize(("hour", "text"), [("00", "12:00 AM"), ("09", "9:00 AM"), ("12", "12:00 PM")])
async def test_written_hours_are_always_full(hour: str, text: str) -> None:
    result = await execute({"datetime": f"2026-03-04T{hour}:00", "style": "time"}, make_context())
    assert result.data["text"] == text


async def test_a_moment_is_converted_to_another_zone() -> None:
    args = {"datetime": "today at 6 pm", "style": "time", "timezone": "Tokyo"}
    result = await execute(args, make_context(zone="Europe/Berlin"))
    assert result.data == {"text": "2:00 AM", "iso": "2026-01-02T02:00:00+09:00", "timezone": "Asia/Tokyo"}
    assert result.spoken == "That's 2 AM the next day in Tokyo."


async def test_without_a_zone_it_is_shown_in_the_users_own() -> None:
    result = await execute({"datetime": "2026-03-04T17:10:00Z", "style": "long"}, make_context(zone="Europe/Berlin"))
    assert result.data["text"] == "Wednesday, March 4, 2026 at 6:10 PM"
    assert result.spoken == "That's Wednesday, March 4th at 6:10 PM."


@pytest.mark.parametrize(("day", "time"), [("2026-03-07", "12:00 PM"), ("2026-03-08", "1:00 PM")])
async def test_summer_time_counts_from_its_first_day(day: str, time: str) -> None:
    args = {"datetime": f"{day}T17:00:00Z", "style": "time", "timezone": "New York"}
    assert (await execute(args, make_context())).data["text"] == time


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("short", "Feb 29, 2028"),
        ("long", "Tuesday, February 29, 2028"),
        ("date", "February 29, 2028"),
        ("iso", "2028-02-29"),
        ("spoken", "Tuesday, February 29th, 2028"),
    ],
)
async def test_a_day_stays_a_day_in_any_zone(style: str, text: str) -> None:
    args = {"datetime": "2028-02-29", "style": style, "timezone": "Honolulu"}
    result = await execute(args, make_context())
    assert result.data["text"] == text
    assert result.spoken == "That's Tuesday, February 29th, 2028."


async def test_a_day_has_no_time_to_write() -> None:
    error = (await execute({"datetime": "tomorrow", "style": "time"}, make_context())).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == "tomorrow is a day without a time."


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"datetime": "banana"}, "I don't know when banana is."),
        ({"datetime": "2026-13-01T10:00"}, "I don't know when 2026-13-01T10:00 is."),
        ({"datetime": "noon", "timezone": "Atlantis"}, "I don't know one time zone for Atlantis."),
        ({"datetime": "9999-12-31T23:00", "timezone": "Tokyo"}, "That date is outside the calendar I know."),
    ],
)
async def test_an_unknown_date_is_refused_with_advice(args: dict[str, str], message: str) -> None:
    error = (await execute({"style": "long"} | args, make_context())).error
    assert error is not None
    assert error.type is ErrorType.VALIDATION
    assert error.message == message
    assert error.suggestion is not None


@pytest.mark.parametrize("when", ["tomorrow", "tomorrow at noon"])
async def test_the_data_matches_the_output_schema(when: str) -> None:
    result = await execute({"datetime": when, "style": "spoken"}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


def hear(said: str) -> dict[str, Any] | None:
    grammar = parse("it", yaml.safe_load((Path(handler.__file__).parent / "sentences.yaml").read_text()))
    match = Matcher(grammar.templates).match(Phrase(said), {"it"})
    return match.args if match else None


@pytest.mark.parametrize(
    ("args", "spoken"),
    [
        ({"datetime": "3 pm", "from_timezone": "Paris", "timezone": "Tokyo"}, "That's 11 PM in Tokyo."),
        ({"datetime": "3 pm London time", "timezone": "New York"}, "That's 10 AM in New York."),
        ({"datetime": "3 pm in London", "timezone": "New York"}, "That's 10 AM in New York."),
        ({"datetime": "9 am", "from_timezone": "Boston"}, "That's 3 PM."),
        ({"datetime": "2 am", "from_timezone": "Tokyo", "timezone": "Lima"}, "That's noon the day before in Lima."),
        ({"datetime": "in 40 minutes"}, "That's 1:40 PM."),
        ({"datetime": "in 12 hours"}, "That's 1 AM tomorrow."),
        ({"datetime": "2 hours ago"}, "That's 11 AM."),
    ],
)
async def test_a_time_is_told_on_other_clocks_and_at_other_hours(args: dict[str, str], spoken: str) -> None:
    result = await execute({**args, "style": "time"}, make_context(zone="Europe/Berlin"))
    assert result.spoken == spoken


async def test_an_unknown_place_to_convert_from_is_named() -> None:
    result = await execute({"datetime": "3 pm", "from_timezone": "Atlantis", "style": "time"}, make_context())
    assert result.error is not None
    assert result.error.message == "I don't know one time zone for Atlantis."


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("when it's 3 pm in Paris what time is it in Tokyo", ("3 pm", "Paris", "Tokyo")),
        ("convert 3 pm to Tokyo time", ("3 pm", None, "Tokyo")),
        ("what's 3 pm London time in New York", ("3 pm", "London", "New York")),
        ("if it is noon in Boston what time is it here", ("noon", "Boston", None)),
        ("what time will it be in 40 minutes", ("in 40 minutes", None, None)),
        ("what time was it two hours ago", ("2 hours ago", None, None)),
    ],
)
def test_conversions_are_matched(said: str, args: tuple[str | None, ...]) -> None:
    heard = hear(said)
    assert heard is not None
    assert tuple(heard.get(key) for key in ("datetime", "from_timezone", "timezone")) == args
