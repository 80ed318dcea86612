"""Stretches of time, as people say them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from antiphon.words.periods import parse_period
from antiphon.words.speech import speak_span

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 1, 1, 12, tzinfo=BERLIN)
"""A Thursday."""


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("today", "01-01T00", "01-02T00"),
        ("Tomorrow", "01-02T00", "01-03T00"),
        ("on friday", "01-02T00", "01-03T00"),
        ("this week", "01-01T00", "01-05T00"),
        ("the rest of the week", "01-01T00", "01-05T00"),
        ("next week", "01-05T00", "01-12T00"),
        ("the weekend", "01-03T00", "01-05T00"),
        ("next weekend", "01-10T00", "01-12T00"),
        ("this month", "01-01T00", "02-01T00"),
        ("next month", "02-01T00", "03-01T00"),
        ("tomorrow morning", "01-02T05", "01-02T12"),
        ("tomorrow afternoon", "01-02T12", "01-02T18"),
        ("friday evening", "01-02T18", "01-02T23"),
        ("this evening", "01-01T18", "01-01T23"),
        ("tonight", "01-01T18", "01-02T00"),
        ("the next three days", "01-01T00", "01-04T00"),
        ("the next 2 weeks", "01-01T00", "01-15T00"),
        ("the next few days", "01-01T00", "01-04T00"),
        ("2026-01-13", "01-13T00", "01-14T00"),
        ("2026-01-13 to 2026-01-15", "01-13T00", "01-16T00"),
        ("from monday to wednesday", "01-05T00", "01-08T00"),
        ("from friday to thursday", "01-02T00", "01-09T00"),
        ("tomorrow at three", "01-02T15", "01-02T15"),
    ],
)
def test_periods_are_understood(said: str, start: str, end: str) -> None:
    period = parse_period(said, NOW)
    assert period is not None
    assert [f"{each:%m-%dT%H}" for each in (period.start, period.end)] == [start, end]


def test_a_moment_with_an_offset_is_converted_to_the_zone_of_the_user() -> None:
    period = parse_period("2026-01-13T12:00:00Z", NOW)
    assert period is not None
    assert period.is_moment
    assert period.start.isoformat() == "2026-01-13T13:00:00+01:00"


@pytest.mark.parametrize("said", ["", "blah", "week", "february 30th", "2026-02-30", "the next week of", "x" * 200])
def test_what_is_no_period_is_not_guessed(said: str) -> None:
    assert parse_period(said, NOW) is None


def test_a_day_of_a_change_of_the_clocks_has_23_hours() -> None:
    period = parse_period("2026-03-29", NOW)
    assert period is not None
    assert period.end.timestamp() - period.start.timestamp() == 23 * 3600


@pytest.mark.parametrize(
    ("start", "end", "spoken"),
    [
        ("2026-01-02T15:00", "2026-01-02T16:30", "tomorrow from 3 PM to 4:30 PM"),
        ("2026-01-02T15:00", "2026-01-03T00:00", "tomorrow from 3 PM to midnight"),
        ("2026-01-02T15:00", "2026-01-02T15:00", "tomorrow at 3 PM"),
        ("2026-01-02T22:00", "2026-01-03T02:00", "from tomorrow at 10 PM to Saturday, January 3rd at 2 AM"),
        ("2026-01-05T00:00", "2026-01-06T00:00", "on Monday, January 5th, all day"),
        ("2026-01-05T00:00", "2026-01-08T00:00", "from Monday, January 5th to Wednesday, January 7th, all day"),
    ],
)
def test_spans_are_said_as_people_say_them(start: str, end: str, spoken: str) -> None:
    moments = [datetime.fromisoformat(each).replace(tzinfo=BERLIN) for each in (start, end)]
    assert speak_span(moments[0], moments[1], NOW.date()) == spoken
