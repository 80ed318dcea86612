"""When something is to happen, in the words of people."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from antiphon.words.schedules import ScheduleError, parse_duration, parse_schedule, speak_left, speak_when, zone_of

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 1, 1, 12, tzinfo=BERLIN)
"""A Thursday."""


def say(text: str, *, in_morning: bool = False) -> str:
    schedule = parse_schedule(text, NOON, in_morning=in_morning)
    return speak_when(schedule.due, schedule.repeat, NOON)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("in ten minutes", "at 12:10 PM"),
        ("in 5 seconds", "in 5 seconds"),
        ("in one minute", "in 1 minute"),
        ("in an hour and a half", "at 1:30 PM"),
        ("in three quarters of an hour", "at 12:45 PM"),
        ("in two days", "at noon on Saturday"),
        ("tomorrow at six", "at 6 PM tomorrow"),
        ("tomorrow", "at 9 AM tomorrow"),
        ("at half past seven", "at 7:30 PM"),
        ("half past seven in the evening", "at 7:30 PM"),
        ("next friday at 5 pm", "at 5 PM on Friday, January 9th"),
        ("tonight", "at 8 PM"),
        ("tonight at ten", "at 10 PM"),
        ("midnight", "at midnight tonight"),
        ("7", "at 7 PM"),
        ("6 30", "at 6:30 PM"),
        ("for nine tomorrow", "at 9 AM tomorrow"),
        ("christmas", "at 9 AM on Friday, December 25th"),
        ("2026-01-03T10:00", "at 10 AM on Saturday"),
        ("2026-01-03T10:00Z", "at 11 AM on Saturday"),
    ],
)
def test_a_time_is_understood(text: str, when: str) -> None:
    assert say(text) == when


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("every day at 8", "every day at 8 AM"),
        ("daily at 9", "every day at 9 AM"),
        ("every day", "every day at 9 AM"),
        ("every morning at 7", "every day at 7 AM"),
        ("every night at eleven thirty", "every day at 11:30 PM"),
        ("every weekday at nine", "every weekday at 9 AM"),
        ("at nine every weekday", "every weekday at 9 AM"),
        ("monday to friday at half past eight", "every weekday at 8:30 AM"),
        ("on mondays and thursdays at noon", "every Monday and Thursday at noon"),
        ("every monday wednesday and friday at 7 am", "every Monday, Wednesday and Friday at 7 AM"),
        ("every week on friday at noon", "every Friday at noon"),
        ("every saturday morning at ten", "every Saturday at 10 AM"),
        ("weekends at ten", "every Saturday and Sunday at 10 AM"),
        ("every hour", "every hour"),
        ("every half hour", "every 30 minutes"),
        ("every two hours", "every 2 hours"),
    ],
)
def test_a_repetition_is_understood(text: str, when: str) -> None:
    assert say(text) == when


@pytest.mark.parametrize(
    ("text", "usual", "for_an_alarm"),
    [
        ("at seven", "at 7 PM", "at 7 AM tomorrow"),
        ("tomorrow at six", "at 6 PM tomorrow", "at 6 AM tomorrow"),
        ("weekdays at six", "every weekday at 6 PM", "every weekday at 6 AM"),
        ("at three", "at 3 PM", "at 3 PM"),
        ("at 7 pm", "at 7 PM", "at 7 PM"),
    ],
)
def test_an_alarm_without_am_or_pm_is_in_the_morning(text: str, usual: str, for_an_alarm: str) -> None:
    assert (say(text), say(text, in_morning=True)) == (usual, for_an_alarm)


@pytest.mark.parametrize(
    ("text", "reason", "is_time"),
    [
        ("banana", "I don't understand when “banana” is.", False),
        ("", "I don't understand when “” is.", False),
        ("x" * 200, "There is no such time", True),
        ("february 30th at 5 pm", "There is no such time as february 30th at 5 pm.", True),
        ("today at nine am", "9 AM has already passed.", True),
        ("2025-01-03T10:00", "10 AM on Friday, January 3rd, 2025 has already passed.", True),
        ("today", "What time today?", True),
        ("in 20 years", "That is more than ten years away, which is too far for me.", True),
        ("every month", "I can only repeat something on days of the week, or every so many minutes or hours.", True),
        ("every other day", "I can only repeat something on days of the week", True),
        ("every 30 seconds", "I can only repeat something on days of the week", True),
    ],
)
def test_a_time_that_cannot_be_used_is_explained(text: str, reason: str, is_time: bool) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text, NOON)
    assert str(caught.value).startswith(reason)
    assert caught.value.is_time is is_time
    assert caught.value.suggestion


def test_a_time_that_the_clocks_skip_is_an_hour_later_and_known_to_be() -> None:
    day_before = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    schedule = parse_schedule("tomorrow at 2:30 am", day_before)
    assert schedule.due.isoformat() == "2026-03-29T03:30:00+02:00"
    assert schedule.skipped is not None
    assert schedule.skipped.isoformat() == "02:30:00"
    assert parse_schedule("tomorrow at 3:30 am", day_before).skipped is None


def test_a_length_of_time_over_the_skipped_hour_is_no_skipped_time() -> None:
    schedule = parse_schedule("in ten minutes", datetime(2026, 3, 29, 1, 55, tzinfo=BERLIN))
    assert (schedule.due.isoformat(), schedule.skipped) == ("2026-03-29T03:05:00+02:00", None)


def test_a_repetition_keeps_the_local_time_over_the_change_of_the_clocks() -> None:
    repeat = parse_schedule("every day at 9", datetime(2026, 3, 27, 12, tzinfo=BERLIN)).repeat
    assert repeat is not None
    saturday = datetime(2026, 3, 28, 9, tzinfo=BERLIN)
    sunday = repeat.next_after(saturday, saturday)
    assert sunday.isoformat() == "2026-03-29T09:00:00+02:00"
    assert (sunday.astimezone(UTC) - saturday.astimezone(UTC)) == timedelta(hours=23)


def test_a_repetition_that_was_missed_for_days_goes_on_in_the_future() -> None:
    repeat = parse_schedule("every 2 hours", NOON).repeat
    assert repeat is not None
    later = NOON + timedelta(days=3, minutes=1)
    assert repeat.next_after(later, NOON) == NOON + timedelta(days=3, hours=2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("ten minutes", 600),
        ("ten minute", 600),
        ("an hour and a half", 5400),
        ("one and a half hours", 5400),
        ("90 seconds", 90),
        ("two and a half minutes", 150),
        ("two and a half minute", 150),
        ("half a minute", 30),
        ("half an hour", 1800),
        ("an hour and a quarter", 4500),
        ("two hours thirty", 9000),
        ("1 hour and 20 minutes and 5 seconds", 4805),
        ("1h 30m", 5400),
        ("45s", 45),
        ("PT10M", 600),
        ("PT1H30M", 5400),
        ("a couple of minutes", 120),
        ("two days", 172_800),
    ],
)
def test_a_length_of_time_is_understood(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["10", "a month", "banana", "", "P", "x" * 200, "ten minutes past six"])
def test_what_is_no_length_of_time_is_not_guessed(text: str) -> None:
    assert parse_duration(text) is None


def test_the_last_minutes_of_a_timer_are_told_to_the_second() -> None:
    assert speak_left(timedelta(minutes=2, seconds=5)) == "2 minutes and 5 seconds"
    assert speak_left(timedelta(minutes=25, seconds=5)) == "25 minutes"
    assert speak_left(timedelta(0)) == "0 seconds"


def test_a_zone_that_is_not_known_any_more_is_utc() -> None:
    assert zone_of("Europe/Oslo") == ZoneInfo("Europe/Oslo")
    assert zone_of("Mars/Olympus") == ZoneInfo("UTC")
    assert zone_of("../etc/passwd") == ZoneInfo("UTC")
