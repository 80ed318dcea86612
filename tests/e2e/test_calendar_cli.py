"""`antiphon calendar …`, and what `doctor` and `data` say about calendars."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Shown, Terminal
from tests.fakes.radicale import PASSWORD, USER, Radicale, run_radicale

pytestmark = pytest.mark.real_time

FILE = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//t//EN
BEGIN:VEVENT
UID:gym
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Berlin:20990105T180000
DTEND;TZID=Europe/Berlin:20990105T190000
RRULE:FREQ=WEEKLY;COUNT=2
SUMMARY:Gym
END:VEVENT
BEGIN:VEVENT
UID:fair
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20990107
SUMMARY:Fair \x1b[31mred
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    (tmp_path / "good.ics").write_text(FILE, newline="")
    return Terminal(tmp_path)


@pytest.fixture(scope="module")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    with run_radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server


def use_caldav(terminal: Terminal, url: str) -> None:
    (terminal.folder / "antiphon.toml").write_text(
        f'[calendar]\nprovider = "caldav"\nurl = "{url}"\nusername = "{USER}"\n[model]\nvoice = "none"\n'
    )


def one_line(shown: Shown) -> str:
    assert shown.code == 1
    assert shown.err.startswith("antiphon: ")
    assert shown.err.count("\n") == 1
    return shown.err


def test_an_imported_file_is_listed_and_exported_again(terminal: Terminal) -> None:
    assert terminal.run("calendar", "import", "good.ics").out == "Imported 2 events into primary.\n"
    listed = terminal.run("calendar", "list", "2099-01-05 to 2099-01-12", TZ="Europe/Berlin").out
    assert [listed.count(word) for word in ("Gym", "2099-01-05 18:00", "2099-01-12 18:00", "all day")] == [2, 1, 1, 1]
    assert "\x1b" not in listed
    assert terminal.run("calendar", "export", "out.ics").err == "Exported 2 events.\n"
    assert "RRULE:FREQ=WEEKLY;COUNT=2" in (terminal.folder / "out.ics").read_text()
    assert (terminal.folder / "out.ics").stat().st_mode & 0o777 == 0o600


def test_importing_twice_replaces_the_events(terminal: Terminal) -> None:
    terminal.run("calendar", "import", "good.ics")
    terminal.run("calendar", "import", "good.ics", "--calendar", "work")
    exported = terminal.run("calendar", "export")
    assert (exported.out.count("BEGIN:VEVENT"), exported.err) == (2, "Exported 2 events.\n")


def test_users_have_calendars_of_their_own(terminal: Terminal) -> None:
    terminal.run("calendar", "import", "good.ics", "--user", "ann")
    assert terminal.run("calendar", "list", "2099-01-05").out == "There are no events in that time.\n"
    assert "Gym" in terminal.run("calendar", "list", "2099-01-05", "--user", "ann").out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "there is no calendar in it"),
        (b"just words", "not an iCalendar file"),
        (b"\xff\xfe", "not UTF-8"),
        (b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "has no events"),
        (FILE.replace("20990107", "20990231").encode(), "its date or time is not valid"),
        (FILE.replace("TZID=Europe/Berlin", "TZID=Middle/Earth").encode(), "no time zone 'Middle/Earth'"),
    ],
)
def test_a_bad_file_imports_nothing(terminal: Terminal, content: bytes, told: str) -> None:
    (terminal.folder / "bad.ics").write_bytes(content)
    assert told in one_line(terminal.run("calendar", "import", "bad.ics"))
    assert terminal.run("calendar", "export").err == "Exported 0 events.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["import", "missing.ics"], "missing.ics cannot be read: No such file"),
        (["import", "."], "cannot be read: Is a directory"),
        (["import", "good.ics", "--calendar", " "], "is not a valid name"),
        (["export", "good.ics"], "good.ics exists. Choose another name."),
        (["export", "nowhere/out.ics"], "cannot be written: No such file"),
        (["list", "blursday"], "'blursday' is not a time I understand"),
        (["list", "tomorrow at three"], "is a moment. Name a day or a range."),
    ],
)
def test_wrong_usage_is_explained_in_one_line(terminal: Terminal, words: list[str], told: str) -> None:
    assert told in one_line(terminal.run("calendar", *words))


def test_the_data_of_a_user_includes_the_local_calendar(terminal: Terminal) -> None:
    terminal.run("calendar", "import", "good.ics")
    shown = terminal.run("data", "export")
    events = [line for line in map(json.loads, shown.out.splitlines()) if line["kind"] == "event"]
    assert [event["uid"] for event in events] == ["gym", "fair"]
    assert "2 events" in terminal.run("data", "delete", "--user", "local", "--yes").out
    assert terminal.run("calendar", "export").err == "Exported 0 events.\n"


# Calendars on another server.


def test_events_of_a_caldav_server_are_listed_but_not_imported(terminal: Terminal, radicale: Radicale) -> None:
    use_caldav(terminal, radicale.url)
    gym, _, _ = FILE.replace("\r\n", "\n").partition("BEGIN:VEVENT\nUID:fair")
    radicale.put("Personal", f"{gym}END:VCALENDAR\n", "gym")
    assert "Gym" in terminal.run("calendar", "list", "2099-01-05", CALDAV_PASSWORD=PASSWORD).out
    told = one_line(terminal.run("calendar", "import", "good.ics", CALDAV_PASSWORD=PASSWORD))
    assert "the events are on that server" in told


def test_the_doctor_reads_the_calendars_of_the_account(terminal: Terminal, radicale: Radicale) -> None:
    use_caldav(terminal, radicale.url)
    shown = terminal.run("doctor", CALDAV_PASSWORD=PASSWORD)
    assert "calendar: caldav (Personal), for local." in shown.out


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"CALDAV_PASSWORD": "wrong"}, "Your calendar server doesn't let me in."),
        ({}, "CALDAV_PASSWORD is not"),
        ({"CALDAV_PASSWORD": PASSWORD, "ZOOM_ACCOUNT_ID": "x"}, "meeting links: ZOOM_CLIENT_ID is not set."),
        ({"CALDAV_PASSWORD": PASSWORD, "ANTIPHON_CALENDAR__CALENDARS": "Work"}, "There is no calendar called Work"),
        ({"ANTIPHON_CALENDAR__PROVIDER": "google"}, "GOOGLE_CALENDAR_CLIENT_ID is not set"),
    ],
)
def test_the_doctor_names_what_is_wrong(
    terminal: Terminal, radicale: Radicale, variables: dict[str, str], told: str
) -> None:
    use_caldav(terminal, radicale.url)
    shown = terminal.run("doctor", **variables)
    assert shown.code == 1
    assert told in shown.out


def test_a_local_calendar_needs_nothing(terminal: Terminal) -> None:
    assert "calendar: local, in the database" in terminal.run("doctor").out


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('provider = "outlook"', '"local", "caldav" or "google"'),
        ('url = "https://ann:secret@dav.example"', "without a password"),
        ('jitsi = "meet.jit.si"', "https://meet.jit.si"),
    ],
)
def test_a_wrong_setting_is_explained(terminal: Terminal, setting: str, told: str) -> None:
    (terminal.folder / "antiphon.toml").write_text(f"[calendar]\n{setting}\n")
    shown = one_line(terminal.run("calendar", "list"))
    assert told in shown
    assert "secret" not in shown
