import json
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from antiphon.authoring.testing import StillClock, make_context
from antiphon.toolkit.get_uptime import handler
from antiphon.toolkit.get_uptime.handler import execute, join, split_duration
from antiphon.tools.arguments import compile_schema
from antiphon.tools.context import Context
from antiphon.tools.result import FlyoutType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
BOOT_S = int(psutil.boot_time())


def context_after(seconds: int, zone: str = "UTC") -> Context:
    return make_context(clock=StillClock((BOOT_S + seconds) * 1000), zone=zone)


async def test_the_uptime_counts_from_the_start_of_the_machine() -> None:
    result = await execute({}, context_after(273_120))
    assert result.data["uptime_seconds"] == 273_120


async def test_the_uptime_is_spoken_in_words() -> None:
    result = await execute({}, context_after(273_120))
    assert result.data["uptime"] == "3 days, 3 hours and 52 minutes"


async def test_the_time_of_the_start_is_in_the_users_zone() -> None:
    result = await execute({}, context_after(3600, zone="Asia/Tokyo"))
    booted = datetime.fromisoformat(result.data["booted_at"])
    assert int(booted.timestamp()) == BOOT_S
    assert result.data["booted_at"].endswith("+09:00")


@pytest.mark.parametrize("days", [91, 182, 273])
async def test_a_change_to_summer_time_since_boot_changes_nothing(days: int) -> None:
    result = await execute({}, context_after(days * 86_400, zone="Europe/Berlin"))
    assert int(datetime.fromisoformat(result.data["booted_at"]).timestamp()) == BOOT_S


async def test_the_sentence_has_the_two_largest_units() -> None:
    result = await execute({}, context_after(273_120))
    assert result.spoken == "This computer has been running for 3 days and 3 hours."


async def test_the_report_is_shown_in_the_terminal() -> None:
    flyout = (await execute({}, context_after(273_120))).flyout
    assert flyout is not None
    assert flyout.flyout_type is FlyoutType.TERMINAL
    assert flyout.content.startswith("Up       3 days, 3 hours and 52 minutes\nStarted  ")
    assert flyout.content.endswith("(UTC)\n")


async def test_a_clock_set_back_before_the_start_gives_no_negative_uptime() -> None:
    result = await execute({}, context_after(-500))
    assert result.data["uptime_seconds"] == 0
    assert result.spoken == "This computer has been running for less than a minute."


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({}, context_after(90_000))
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (3600, "1 hour"),
        (3661, "1 hour and 1 minute"),
        (86_400, "1 day"),
        (86_400 + 120, "1 day and 2 minutes"),
        (2 * 86_400 + 2 * 3600 + 120, "2 days, 2 hours and 2 minutes"),
        (400 * 86_400, "400 days"),
    ],
)
def test_a_duration_is_spoken_without_empty_units(seconds: int, words: str) -> None:
    assert join(split_duration(seconds)) == words
