from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.words.dates import parse_date, parse_datetime, parse_last, parse_when

NEW_YORK = ZoneInfo("America/New_York")
TODAY = date(2026, 1, 1)
"""A Thursday."""
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=NEW_YORK)


def moment(text: str, now: datetime = NOW) -> str | None:
    """What was heard, as it stands on the wall."""
    heard = parse_datetime(text, now)
    return f"{heard:%Y-%m-%d %H:%M}" if heard else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-04", "2026-03-04"),
        ("2026-03-04T10:00:00Z", "2026-03-04"),
        ("today", "2026-01-01"),
        ("Tomorrow", "2026-01-02"),
        ("yesterday", "2025-12-31"),
        ("the day after tomorrow", "2026-01-03"),
        ("the day before yesterday", "2025-12-30"),
        ("right now", "2026-01-01"),
    ],
)
def test_a_date_is_read_as_iso_or_as_a_word(text: str, expected: str) -> None:
    assert str(parse_date(text, TODAY)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("friday", "2026-01-02"),
        ("on Friday", "2026-01-02"),
        ("this friday", "2026-01-02"),
        ("next friday", "2026-01-09"),
        ("next monday", "2026-01-05"),
        ("friday next week", "2026-01-09"),
        ("last friday", "2025-12-26"),
        ("thursday", "2026-01-01"),
        ("last thursday", "2025-12-25"),
        ("friday the thirteenth", "2026-02-13"),
        ("the weekend", "2026-01-03"),
        ("next weekend", "2026-01-10"),
    ],
)
def test_a_weekday_is_the_coming_one_and_the_next_one_is_in_the_next_week(text: str, expected: str) -> None:
    assert str(parse_date(text, TODAY)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("march third", "2026-03-03"),
        ("March the 3rd", "2026-03-03"),
        ("the 4th of July", "2026-07-04"),
        ("july fourth", "2026-07-04"),
        ("25 December", "2026-12-25"),
        ("december twenty-fifth", "2026-12-25"),
        ("Dec. 25th, 2027", "2027-12-25"),
        ("third of march 2027", "2027-03-03"),
        ("march third twenty twenty seven", "2027-03-03"),
        ("may twenty first two thousand thirty", "2030-05-21"),
        ("Friday, March 6th", "2026-03-06"),
        ("january first", "2026-01-01"),
        ("the second of january", "2026-01-02"),
        ("the 15th", "2026-01-15"),
        ("the first of next month", "2026-02-01"),
    ],
)
def test_a_day_of_a_month_is_its_next_occurrence_and_today_counts(text: str, expected: str) -> None:
    assert str(parse_date(text, TODAY)) == expected


def test_a_day_that_is_over_this_year_is_the_next_years() -> None:
    assert parse_date("march third", date(2026, 3, 4)) == date(2027, 3, 3)


def test_the_31st_waits_for_a_month_that_has_one() -> None:
    assert parse_date("the 31st", date(2026, 4, 2)) == date(2026, 5, 31)


def test_a_leap_day_waits_for_a_leap_year() -> None:
    assert parse_date("29 February", TODAY) == date(2028, 2, 29)


def test_the_longest_wait_for_a_leap_day_is_eight_years() -> None:
    assert parse_date("february 29th", date(2096, 3, 1)) == date(2104, 2, 29)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in ten days", "2026-01-11"),
        ("45 days from now", "2026-02-15"),
        ("a hundred days from today", "2026-04-11"),
        ("in two weeks", "2026-01-15"),
        ("in a fortnight", "2026-01-15"),
        ("a week from friday", "2026-01-09"),
        ("two days after Christmas", "2026-12-27"),
        ("ten days before march 1st", "2026-02-19"),
        ("three days ago", "2025-12-29"),
        ("in a year and a half", "2027-07-01"),
    ],
)
def test_days_can_be_counted_from_another_day(text: str, expected: str) -> None:
    assert str(parse_date(text, TODAY)) == expected


def test_a_month_after_the_31st_is_the_last_day_of_a_shorter_month() -> None:
    assert parse_date("in a month", date(2028, 1, 31)) == date(2028, 2, 29)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Christmas", "2026-12-25"),
        ("Christmas Eve", "2026-12-24"),
        ("new year", "2027-01-01"),
        ("New Year’s Eve", "2026-12-31"),
        ("halloween", "2026-10-31"),
        ("Valentine's Day", "2027-02-14"),
        ("thanksgiving", "2026-11-26"),
        ("black friday", "2026-11-27"),
        ("Easter", "2027-03-28"),
        ("good friday", "2027-03-26"),
        ("independence day", "2026-07-04"),
        ("labor day", "2026-09-07"),
        ("memorial day", "2027-05-31"),
        ("mother's day", "2027-05-09"),
        ("election day", "2026-11-03"),
        ("Saint Patrick's Day", "2027-03-17"),
        ("christmas 2030", "2030-12-25"),
        ("easter next year", "2027-03-28"),
        ("last christmas", "2025-12-25"),
    ],
)
def test_a_holiday_is_its_next_occurrence(text: str, expected: str) -> None:
    assert str(parse_date(text, date(2026, 6, 1))) == expected


def test_on_a_holiday_that_holiday_is_today() -> None:
    assert parse_date("Christmas", date(2026, 12, 25)) == date(2026, 12, 25)


@pytest.mark.parametrize(
    ("year", "month", "day"), [(2000, 4, 23), (2008, 3, 23), (2019, 4, 21), (2024, 3, 31), (2026, 4, 5), (2038, 4, 25)]
)
def test_easter_follows_the_church_calendar(year: int, month: int, day: int) -> None:
    assert parse_date(f"easter {year}", TODAY) == date(year, month, day)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("may", "2026-05-01"),
        ("March 2027", "2027-03-01"),
        ("next month", "2026-02-01"),
        ("next year", "2027-01-01"),
        ("2030", "2030-01-01"),
        ("the end of the month", "2026-01-31"),
    ],
)
def test_a_month_or_a_year_is_its_first_day(text: str, expected: str) -> None:
    assert str(parse_date(text, TODAY)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12/25/2026", "2026-12-25"),
        ("25/12/2026", "2026-12-25"),
        ("12/25", "2026-12-25"),
        ("25.12.2026", "2026-12-25"),
        ("2026/12/25", "2026-12-25"),
        ("25-Dec-2026", "2026-12-25"),
    ],
)
def test_written_dates_are_read_month_first_where_both_are_possible(text: str, expected: str) -> None:
    assert str(parse_date(text, TODAY)) == expected


NONSENSE = """
banana|a|1|12|six|second|sun|sat|mar|the|in|may may|12 25 2026 99|hello tomorrow|tomorrow banana|1e5|next|o'clock|?|
"""


@pytest.mark.parametrize("text", NONSENSE.split("|"))
def test_nonsense_is_not_a_date(text: str) -> None:
    assert parse_date(text, TODAY) is None
    assert parse_datetime(text, NOW) is None


@pytest.mark.parametrize(
    "text", ["February 30th", "2026-02-30", "2026-13-01", "february 29 2027", "december 32", "Friday, March 5th 2026"]
)
def test_a_day_that_does_not_exist_is_not_a_date(text: str) -> None:
    assert parse_date(text, TODAY) is None


@pytest.mark.parametrize("text", ["in 9999 years", "in 9999999 days", "9999999 weeks ago", "december 25 0000"])
def test_a_day_beyond_the_calendar_is_not_a_date(text: str) -> None:
    assert parse_date(text, TODAY) is None


def test_nothing_longer_than_a_hundred_characters_is_a_date() -> None:
    assert parse_date("tomorrow" + " " * 92, TODAY) == date(2026, 1, 2)
    assert parse_date("tomorrow" + " " * 93, TODAY) is None


@pytest.mark.parametrize("text", ["6 pm", "noon", "in two hours", "in the morning", "6 pm EST"])
def test_a_time_alone_names_no_day(text: str) -> None:
    assert parse_date(text, TODAY) is None


def test_a_day_is_found_beside_a_time() -> None:
    assert parse_date("tomorrow at six", TODAY) == date(2026, 1, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-04T10:00", "2026-03-04 10:00"),
        ("2026-03-04 10:30 pm", "2026-03-04 22:30"),
        ("2026-03-04T10:00:00Z", "2026-03-04 05:00"),
        ("2026-03-04T10:00:00+09:00", "2026-03-03 20:00"),
    ],
)
def test_an_iso_moment_is_converted_to_the_zone_of_now(text: str, expected: str) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow at 6 pm", "2026-01-02 18:00"),
        ("tomorrow at six p.m.", "2026-01-02 18:00"),
        ("at noon on friday", "2026-01-02 12:00"),
        ("July 4th at half past nine", "2026-07-04 09:30"),
        ("monday at quarter to five pm", "2026-01-05 16:45"),
        ("six thirty pm tomorrow", "2026-01-02 18:30"),
        ("tomorrow at six oh five am", "2026-01-02 06:05"),
        ("ten minutes past 6 pm", "2026-01-01 18:10"),
        ("friday at 18:30", "2026-01-02 18:30"),
        ("6.30 pm", "2026-01-01 18:30"),
        ("tomorrow at 8 o'clock", "2026-01-02 08:00"),
        ("7 in the morning", "2026-01-02 07:00"),
        ("tomorrow evening at six", "2026-01-02 18:00"),
        ("in ten days at noon", "2026-01-11 12:00"),
        ("now", "2026-01-01 12:00"),
    ],
)
def test_a_time_of_day_is_understood_with_or_without_a_day(text: str, expected: str) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("at six", "2026-01-01 18:00"), ("at eleven", "2026-01-01 23:00"), ("today at six", "2026-01-01 18:00")],
)
def test_an_hour_without_am_or_pm_is_the_next_one_today(text: str, expected: str) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow at six", "2026-01-02 18:00"),
        ("tomorrow at seven", "2026-01-02 07:00"),
        ("friday at 12", "2026-01-02 12:00"),
    ],
)
def test_an_hour_without_am_or_pm_is_in_the_daytime_of_another_day(text: str, expected: str) -> None:
    assert moment(text) == expected


def test_late_at_night_an_hour_is_the_next_mornings() -> None:
    assert moment("at six", datetime(2026, 1, 1, 23, 0, tzinfo=NEW_YORK)) == "2026-01-02 06:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tonight", "2026-01-01 20:00"),
        ("tonight at ten", "2026-01-01 22:00"),
        ("tonight at one", "2026-01-02 01:00"),
        ("tonight at midnight", "2026-01-02 00:00"),
        ("tomorrow morning", "2026-01-02 09:00"),
        ("this evening", "2026-01-01 18:00"),
        ("midnight", "2026-01-02 00:00"),
    ],
)
def test_a_part_of_the_day_has_a_customary_hour_and_the_night_goes_past_midnight(text: str, expected: str) -> None:
    assert moment(text) == expected


def test_a_weekday_whose_time_has_passed_today_is_in_a_week() -> None:
    assert moment("thursday at 9 am") == "2026-01-08 09:00"


def test_a_time_of_today_that_has_passed_stays_in_the_past() -> None:
    assert moment("today at 9 am") == "2026-01-01 09:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in two hours", "2026-01-01 14:00"),
        ("in half an hour", "2026-01-01 12:30"),
        ("in an hour and ten minutes", "2026-01-01 13:10"),
        ("two and a half hours from now", "2026-01-01 14:30"),
        ("in 1.5 hours", "2026-01-01 13:30"),
        ("ten minutes ago", "2026-01-01 11:50"),
        ("an hour before midnight", "2026-01-01 23:00"),
        ("in ten days", "2026-01-11 12:00"),
    ],
)
def test_a_span_keeps_the_time_of_day_from_which_it_counts(text: str, expected: str) -> None:
    assert moment(text) == expected


def test_a_day_without_a_time_starts_at_midnight() -> None:
    assert moment("tomorrow") == "2026-01-02 00:00"


@pytest.mark.parametrize("text", ["at 25", "13 pm", "25 o'clock", "tomorrow at 6:75", "tomorrow at 6:75 EST", "24:10"])
def test_an_invalid_hour_is_not_understood(text: str) -> None:
    assert parse_datetime(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fri, 05 Mar 2027 10:00:00 +0100", "2027-03-05 04:00"),
        ("tomorrow at 3 pm PST", "2026-01-02 18:00"),
        ("10:00 UTC", "2026-01-02 05:00"),
    ],
)
def test_a_moment_may_be_written_with_its_zone(text: str, expected: str) -> None:
    assert moment(text) == expected


def test_a_time_skipped_by_summer_time_moves_forward_by_an_hour() -> None:
    eve = datetime(2026, 3, 7, 12, 0, tzinfo=NEW_YORK)
    assert moment("tomorrow at 2:30 am", eve) == "2026-03-08 03:30"


def test_hours_are_counted_on_the_clock_and_days_in_the_calendar() -> None:
    eve = datetime(2026, 3, 7, 12, 0, tzinfo=NEW_YORK)
    assert moment("in 24 hours", eve) == "2026-03-08 13:00"
    assert moment("in one day", eve) == "2026-03-08 12:00"


def test_a_moment_is_in_the_zone_of_now() -> None:
    heard = parse_datetime("tomorrow at noon", NOW)
    assert heard is not None
    assert heard.tzinfo is NEW_YORK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("january 1st", "2026-01-01"),
        ("january 2nd", "2025-01-02"),
        ("christmas", "2025-12-25"),
        ("monday", "2025-12-29"),
        ("last tuesday", "2025-12-30"),
        ("9 am", "2026-01-01T09:00:00-05:00"),
        ("9 pm", "2025-12-31T21:00:00-05:00"),
        ("july 4 1976", "1976-07-04"),
        ("march 2030", "2030-03-01"),
    ],
)
def test_what_has_been_is_the_last_occurrence(text: str, expected: str) -> None:
    heard = parse_last(text, NOW)
    assert heard is not None
    assert heard.isoformat() == expected


def test_what_has_been_may_be_unknown() -> None:
    assert parse_last("the flood", NOW) is None


def test_what_was_said_is_a_day_or_a_moment() -> None:
    assert parse_when("christmas", NOW) == date(2026, 12, 25)
    assert parse_when("christmas at noon", NOW) == datetime(2026, 12, 25, 12, 0, tzinfo=NEW_YORK)
    assert parse_when("banana", NOW) is None


WORDS = """
at in on the a of to next last day days week half past noon night may 6 6pm 31st 2026 99 12:30 friday feb 30 ago from
after before eve christmas 9999999 years hours 2026-02-30 9999-12-31T23:59 0001-01-01 EST
"""


# No deadline: dateparser takes 0.3 s at its first call.
@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=8).map(" ".join) | st.text(max_size=100))
def test_no_words_break_the_parser(text: str) -> None:
    day, heard = parse_date(text, TODAY), parse_datetime(text, NOW.astimezone(UTC))
    assert day is None or isinstance(day, date)
    assert heard is None or heard.tzinfo is not None
