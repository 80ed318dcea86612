from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from antiphon.sentences.matching import Matcher
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.templates import parse
from antiphon.toolkit.calendar_get_availability import handler
from antiphon.toolkit.calendar_get_availability.gaps import Slot, find_gaps

SENTENCES = yaml.safe_load((Path(handler.__file__).parent / "sentences.yaml").read_text())


def hear(said: str) -> dict[str, Any] | None:
    match = Matcher(parse("it", SENTENCES).templates).match(Phrase(said), {"it"})
    return match.args if match else None


@pytest.mark.parametrize(
    ("said", "period"),
    [
        ("am I free tomorrow afternoon", "tomorrow afternoon"),
        ("am i busy on friday", "friday"),
        ("do I have any free time on monday", "monday"),
        ("when am I free next week", "next week"),
        ("what's my availability for thursday", "thursday"),
        ("is my calendar clear tomorrow", "tomorrow"),
        ("check my availability for next week", "next week"),
    ],
)
def test_people_ask_for_free_time_in_many_ways(said: str, period: str) -> None:
    assert hear(said) == {"start_date": period, "end_date": period}


def test_a_time_of_day_means_an_hour() -> None:
    assert hear("am i free tomorrow at three") == {
        "start_date": "tomorrow at three",
        "end_date": "1 hour after tomorrow at three",
    }


def test_a_start_and_an_end_can_be_said() -> None:
    assert hear("am I free on friday from two to four") == {"start_date": "friday at two", "end_date": "friday at four"}


AT = datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin"))
DAY = Slot(AT, AT + timedelta(days=1))


def hours(*pairs: tuple[int, int]) -> list[Slot]:
    return [Slot(AT.replace(hour=start), AT.replace(hour=end)) for start, end in pairs]


@pytest.mark.parametrize(
    ("busy", "free"),
    [
        (((9, 10),), [(0, 9), (10, 24)]),
        (((9, 11), (10, 12)), [(0, 9), (12, 24)]),
        (((9, 17), (10, 11)), [(0, 9), (17, 24)]),
        (((12, 13), (9, 10)), [(0, 9), (10, 12), (13, 24)]),
        (((9, 10), (10, 11)), [(0, 9), (11, 24)]),
        ((), [(0, 24)]),
    ],
)
def test_busy_times_may_overlap_touch_and_come_in_any_order(
    busy: tuple[tuple[int, int], ...], free: list[tuple[int, int]]
) -> None:
    gaps = find_gaps(hours(*busy), DAY, timedelta(minutes=30))
    assert [(gap.start.hour, gap.end.hour or 24) for gap in gaps] == free


def test_busy_times_that_reach_beyond_the_range_are_cut() -> None:
    busy = [Slot(AT - timedelta(days=1), AT.replace(hour=8)), Slot(AT.replace(hour=20), AT + timedelta(days=2))]
    [gap] = find_gaps(busy, DAY, timedelta(minutes=30))
    assert (gap.start.hour, gap.end.hour) == (8, 20)


def test_minutes_are_real_minutes_on_a_day_of_23_hours() -> None:
    [gap] = find_gaps([], DAY, timedelta(minutes=30))
    assert gap.minutes == 23 * 60
