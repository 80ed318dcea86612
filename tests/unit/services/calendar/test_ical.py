"""iCalendar files: what is read, what is refused, and how series are expanded."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import icalendar
import pytest

from antiphon.services.calendar.ical import (
    CalendarFileError,
    find_occurrences,
    read_file,
    remove_occurrence,
    write_file,
)

BERLIN = ZoneInfo("Europe/Berlin")
TOKYO = ZoneInfo("Asia/Tokyo")


def ics(*events: str) -> str:
    body = "\n".join(f"BEGIN:VEVENT\nDTSTAMP:20260101T000000Z\n{event}\nEND:VEVENT" for event in events)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//t//EN\n{body}\nEND:VCALENDAR\n".replace("\n", "\r\n")


def days(text: str, zone: ZoneInfo = BERLIN, month: int = 1) -> list[tuple[str, str]]:
    start = datetime(2026, month, 1, tzinfo=zone)
    found = find_occurrences(text, start, start + timedelta(days=31), calendar="c", zone=zone)
    return [(event.title, event.start.isoformat()) for event in found]


WEEKLY = "UID:w\nSUMMARY:Gym\nDTSTART;TZID=Europe/Berlin:20260105T180000\nDTEND;TZID=Europe/Berlin:20260105T190000"


def test_exceptions_and_moved_occurrences_are_respected() -> None:
    text = ics(
        f"{WEEKLY}\nRRULE:FREQ=WEEKLY;COUNT=4\nEXDATE;TZID=Europe/Berlin:20260112T180000",
        "UID:w\nSUMMARY:Gym (late)\nRECURRENCE-ID;TZID=Europe/Berlin:20260119T180000\n"
        "DTSTART;TZID=Europe/Berlin:20260119T200000\nDTEND;TZID=Europe/Berlin:20260119T210000",
    )
    assert days(text) == [
        ("Gym", "2026-01-05T18:00:00+01:00"),
        ("Gym (late)", "2026-01-19T20:00:00+01:00"),
        ("Gym", "2026-01-26T18:00:00+01:00"),
    ]


def test_a_series_keeps_its_wall_clock_time_over_a_change_of_the_clocks() -> None:
    text = ics(
        "UID:w\nSUMMARY:Gym\nDTSTART;TZID=Europe/Berlin:20260323T180000\nDTEND;TZID=Europe/Berlin:20260323T190000\n"
        "RRULE:FREQ=WEEKLY;COUNT=2"
    )
    assert [at for _, at in days(text, month=3)] == ["2026-03-23T18:00:00+01:00", "2026-03-30T18:00:00+02:00"]


def test_local_times_are_in_the_zone_of_the_user() -> None:
    text = ics("UID:a\nSUMMARY:Pills\nDTSTART:20260105T080000\nDTEND:20260105T081500")
    assert days(text, TOKYO) == [("Pills", "2026-01-05T08:00:00+09:00")]


def test_an_all_day_event_is_on_its_day_wherever_the_user_is() -> None:
    text = ics("UID:a\nSUMMARY:Holiday\nDTSTART;VALUE=DATE:20260106")
    for zone in (TOKYO, ZoneInfo("America/Los_Angeles")):
        start = datetime(2026, 1, 6, tzinfo=zone)
        assert len(find_occurrences(text, start, start + timedelta(days=1), calendar="c", zone=zone)) == 1
        before = start - timedelta(days=1)
        assert find_occurrences(text, before, start, calendar="c", zone=zone) == []


def test_cancelled_events_are_not_there() -> None:
    assert days(ics(f"{WEEKLY}\nSTATUS:CANCELLED")) == []


def test_a_windows_time_zone_is_understood() -> None:
    text = ics("UID:a\nSUMMARY:x\nDTSTART;TZID=W. Europe Standard Time:20260105T100000\nDURATION:PT1H")
    assert days(text) == [("x", "2026-01-05T10:00:00+01:00")]


def test_one_occurrence_of_an_all_day_series_can_be_removed() -> None:
    text = ics("UID:a\nSUMMARY:Fast\nDTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;COUNT=3")
    left = remove_occurrence(text, "20260106")
    assert left is not None
    assert [at[:10] for _, at in days(left.ics)] == ["2026-01-05", "2026-01-07"]
    assert remove_occurrence(text, "not a date") is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no calendar in it"),
        (b"hello", "not an iCalendar file"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:cut off", "calendar"),
        (ics("UID:a\nSUMMARY:Tea\nDTSTART:20260231T100000Z"), "event 1 ('Tea'): its date or time is not valid"),
        (ics("UID:a\nSUMMARY:Tea"), "its date or time is not valid"),
        (ics("UID:a\nSUMMARY:Tea\nDTSTART:20260105T100000Z\nDTEND:20260105T090000Z"), "it ends before it starts"),
        (ics("UID:a\nSUMMARY:Tea\nDTSTART;TZID=Middle/Earth:20260105T100000"), "no time zone 'Middle/Earth'"),
        (ics("UID:a\nSUMMARY:Tea\nDTSTART:20260105T100000Z\nRRULE:FREQ=DAYLY"), "RRULE is not valid"),
        (ics("UID:a\nSUMMARY:Tea\nDTSTART:20260105T100000Z\nRRULE:FREQ=SECONDLY"), "it recurs secondly"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place(content: bytes | str, told: str) -> None:
    with pytest.raises(CalendarFileError, match=told.replace("(", r"\(").replace(")", r"\)")):
        list(read_file(content))


def test_an_event_without_a_uid_gets_the_same_one_each_time() -> None:
    text = ics("SUMMARY:Tea\nDTSTART:20260105T100000Z")
    [first], [second] = read_file(text), read_file(text)
    assert first.uid == second.uid


def test_the_end_of_a_series_is_known_only_if_its_rule_has_one() -> None:
    [endless] = read_file(ics(f"{WEEKLY}\nRRULE:FREQ=WEEKLY"))
    [ending] = read_file(ics(f"{WEEKLY}\nRRULE:FREQ=WEEKLY;UNTIL=20260301T000000Z"))
    assert endless.last is None
    assert ending.last is not None
    assert ending.last > datetime(2026, 3, 1, tzinfo=BERLIN)


def test_what_was_exported_can_be_imported_with_its_time_zones() -> None:
    zone = (
        "BEGIN:VTIMEZONE\r\nTZID:Own Zone\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nTZOFFSETFROM:+0300\r\n"
        "TZOFFSETTO:+0300\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    )
    events = ics(
        "UID:a\nSUMMARY:A\nDTSTART;TZID=Own Zone:20260105T100000\nDURATION:PT1H",
        "UID:b\nSUMMARY:B\nDTSTART;TZID=Own Zone:20260106T100000\nDURATION:PT1H",
    ).replace("BEGIN:VEVENT", f"{zone}BEGIN:VEVENT", 1)
    exported = write_file(event.ics for event in read_file(events))
    assert exported.count(b"BEGIN:VTIMEZONE") == 1
    again = [event.ics for event in read_file(exported)]
    assert [days(text)[0][1] for text in again] == ["2026-01-05T08:00:00+01:00", "2026-01-06T08:00:00+01:00"]


def test_text_of_other_people_cannot_add_properties() -> None:
    from antiphon.services.calendar.ical import make_event
    from antiphon.tools.capabilities.calendar import EventDraft

    start = datetime(2026, 1, 5, tzinfo=BERLIN)
    draft = EventDraft("u", "Tea\r\nATTENDEE:mailto:eve@example.org", start, start + timedelta(hours=1))
    [event] = icalendar.Calendar.from_ical(make_event(draft, start).ics).walk("VEVENT")
    assert "ATTENDEE" not in event
