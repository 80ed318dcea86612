from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from antiphon.words.speech import speak_date, speak_duration, speak_near_day, speak_time

TODAY = date(2026, 1, 1)


@pytest.mark.parametrize(
    ("at", "spoken"),
    [
        (time(0, 0), "midnight"),
        (time(0, 5), "12:05 AM"),
        (time(4, 0), "4 AM"),
        (time(11, 59), "11:59 AM"),
        (time(12, 0), "noon"),
        (time(12, 30), "12:30 PM"),
        (time(16, 10), "4:10 PM"),
        (time(23, 0), "11 PM"),
    ],
)
def test_a_time_is_spoken_on_a_twelve_hour_clock(at: time, spoken: str) -> None:
    assert speak_time(at) == spoken


def test_a_moment_is_spoken_in_its_own_zone() -> None:
    assert speak_time(datetime(2026, 1, 1, 21, 0, tzinfo=ZoneInfo("Asia/Tokyo"))) == "9 PM"


@pytest.mark.parametrize(
    ("day", "spoken"),
    [
        (date(2026, 1, 1), "Thursday, January 1st"),
        (date(2026, 1, 2), "Friday, January 2nd"),
        (date(2026, 3, 3), "Tuesday, March 3rd"),
        (date(2026, 3, 11), "Wednesday, March 11th"),
        (date(2026, 3, 12), "Thursday, March 12th"),
        (date(2026, 3, 13), "Friday, March 13th"),
        (date(2026, 3, 21), "Saturday, March 21st"),
        (date(2026, 3, 22), "Sunday, March 22nd"),
    ],
)
def test_a_date_is_spoken_with_its_weekday_and_an_ordinal(day: date, spoken: str) -> None:
    assert speak_date(day, TODAY) == spoken


def test_the_year_is_spoken_only_if_it_is_another() -> None:
    assert speak_date(date(2027, 1, 1), TODAY) == "Friday, January 1st, 2027"


@pytest.mark.parametrize(
    ("delta", "spoken"),
    [
        (timedelta(hours=3, minutes=12), "3 hours and 12 minutes"),
        (timedelta(days=359), "359 days"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=2, hours=1), "2 days and 1 hour"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(seconds=45), "45 seconds"),
        (timedelta(0), "0 seconds"),
    ],
)
def test_a_duration_is_spoken_in_at_most_two_units(delta: timedelta, spoken: str) -> None:
    assert speak_duration(delta) == spoken


@pytest.mark.parametrize(
    ("delta", "spoken"),
    [
        (timedelta(minutes=59, seconds=50), "1 hour"),
        (timedelta(hours=23, minutes=59, seconds=50), "1 day"),
        (timedelta(days=2, hours=5, minutes=40), "2 days and 6 hours"),
        (timedelta(seconds=59.6), "1 minute"),
    ],
)
def test_a_duration_is_rounded_to_the_smallest_unit_that_is_spoken(delta: timedelta, spoken: str) -> None:
    assert speak_duration(delta) == spoken


def test_a_duration_in_the_past_is_spoken_as_a_length() -> None:
    assert speak_duration(-timedelta(hours=2)) == "2 hours"


@pytest.mark.parametrize(("days", "spoken"), [(0, "today"), (1, "tomorrow"), (2, "on Saturday"), (6, "on Wednesday")])
def test_a_day_of_the_coming_week_is_spoken_without_its_date(days: int, spoken: str) -> None:
    assert speak_near_day(TODAY + timedelta(days=days), TODAY) == spoken
