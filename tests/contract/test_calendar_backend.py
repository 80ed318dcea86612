"""The contract of a calendar, over the local one, a real CalDAV server, and a server that answers as Google does."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from antiphon.authoring.testing import StillClock
from antiphon.services.calendar.backend import CalendarBackend
from antiphon.services.calendar.dav import DavAccount, DavBackend
from antiphon.services.calendar.google import GoogleBackend, RefreshToken
from antiphon.services.calendar.ical import read_file
from antiphon.services.calendar.links import JitsiLinks
from antiphon.services.calendar.local import LocalBackend, store_event
from antiphon.services.calendar.user_calendar import UserCalendar
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.capabilities.calendar import Event, EventDraft, LinkProvider
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.google_calendar import REFRESH, GoogleCalendar
from tests.fakes.local_http import serving, without_tls
from tests.fakes.radicale import PASSWORD, USER, Radicale, run_radicale

pytestmark = pytest.mark.real_time

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 1, 5, tzinfo=BERLIN)
DRAFT = EventDraft(
    uid="antiphon-0123456789abcdef",
    title="Tea, with “cake”; and\nmore",
    start=MONDAY + timedelta(hours=15),
    end=MONDAY + timedelta(hours=16),
    attendees=("bob@example.org",),
    description="Bring cups",
)


@dataclass
class Kept:
    """A calendar as a tool gets it, and a way to put a series into it that another program has made."""

    calendar: UserCalendar
    backend: CalendarBackend
    add_series: Callable[[], None]
    add_all_day: Callable[[], None]


SERIES = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:standup
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Berlin:20260105T090000
DTEND;TZID=Europe/Berlin:20260105T093000
RRULE:FREQ=DAILY;COUNT=3
SUMMARY:Standup
END:VEVENT
END:VCALENDAR
"""
ALL_DAY = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:fair
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20260107
DTEND;VALUE=DATE:20260109
SUMMARY:Fair
TRANSP:TRANSPARENT
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture(scope="module")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    with run_radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server


@pytest.fixture(params=["local", "caldav", "google"])
async def kept(request: pytest.FixtureRequest, radicale: Radicale) -> AsyncIterator[Kept]:
    clock = StillClock()
    links = JitsiLinks("https://meet.example.org/", lambda: "an-unguessable-room")
    if request.param == "local":
        yield _local(clock, links)
    elif request.param == "caldav":
        name = f"C{len(list((radicale.folder / 'collection-root' / USER).iterdir()))}"
        radicale.make_calendar(name)
        account = DavAccount(radicale.url, USER, PASSWORD, calendars=(name,))
        dav = DavBackend(account, clock)
        yield Kept(
            UserCalendar(dav, links, BERLIN),
            dav,
            lambda: radicale.put(name, SERIES, "standup"),
            lambda: radicale.put(name, ALL_DAY, "fair"),
        )
        await dav.aclose()
    else:
        async with serving(GoogleCalendar()) as google:
            credentials = RefreshToken("id", "secret", REFRESH)
            backend = GoogleBackend(credentials, clock, api=google.api, tokens=google.token_url, network=without_tls())
            yield Kept(
                UserCalendar(backend, links, BERLIN),
                backend,
                lambda: _google_series(google),
                lambda: google.put(
                    "primary",
                    {
                        "id": "fair",
                        "summary": "Fair",
                        "start": {"date": "2026-01-07"},
                        "end": {"date": "2026-01-09"},
                        "transparency": "transparent",
                    },
                ),
            )
            await backend.aclose()


def _local(clock: StillClock, links: JitsiLinks) -> Kept:
    store = MemoryDatabase().calendar

    def put(text: str) -> None:
        [event] = read_file(text)
        # The memory store does not wait, so it needs no loop.
        store._events["ann", event.uid] = store_event(event, "ann", "primary")

    backend = LocalBackend(store, "ann", clock)
    return Kept(UserCalendar(backend, links, BERLIN), backend, lambda: put(SERIES), lambda: put(ALL_DAY))


def _google_series(google: GoogleCalendar) -> None:
    """A series as the API lists it with singleEvents: one event for each occurrence."""
    for n in range(3):
        start = datetime(2026, 1, 5 + n, 9, tzinfo=BERLIN)
        google.put(
            "primary",
            {
                "id": f"standup_2026010{5 + n}T080000Z",
                "recurringEventId": "standup",
                "summary": "Standup",
                "start": {"dateTime": start.isoformat()},
                "end": {"dateTime": (start + timedelta(minutes=30)).isoformat()},
            },
        )
    google.put(
        "primary",
        {"id": "standup", "summary": "Standup", "start": {"date": "2000-01-01"}, "end": {"date": "2000-01-01"}},
    )


async def week(kept: Kept) -> list[Event]:
    return list(await kept.calendar.events(MONDAY, MONDAY + timedelta(days=7)))


async def test_a_created_event_is_listed_as_it_was_made(kept: Kept) -> None:
    created = await kept.calendar.create(DRAFT, with_link=True)
    assert created.is_new
    assert created.link is not None
    assert (created.link.provider, created.link.url) == (
        LinkProvider.JITSI,
        "https://meet.example.org/an-unguessable-room",
    )
    [event] = await week(kept)
    assert (event.title, event.start, event.end) == (DRAFT.title, DRAFT.start, DRAFT.end)
    assert (event.attendees, event.description, event.link) == (DRAFT.attendees, "Bring cups", created.link.url)
    assert (event.all_day, event.is_busy, event.series) == (False, True, None)


async def test_the_same_event_is_not_created_twice(kept: Kept) -> None:
    first = await kept.calendar.create(DRAFT, with_link=False)
    second = await kept.calendar.create(replace(DRAFT, title="Another title"), with_link=True)
    assert (first.is_new, second.is_new, second.link) == (True, False, None)
    assert [event.title for event in await week(kept)] == [DRAFT.title]


async def test_of_five_at_the_same_time_one_is_created(kept: Kept) -> None:
    created = await asyncio.gather(*(kept.calendar.create(DRAFT, with_link=False) for _ in range(5)))
    assert sum(each.is_new for each in created) == 1
    assert len(await week(kept)) == 1


async def test_an_event_can_be_created_again_after_it_was_deleted(kept: Kept) -> None:
    first = await kept.calendar.create(DRAFT, with_link=False)
    await kept.calendar.delete(first.id)
    assert await week(kept) == []
    assert (await kept.calendar.create(DRAFT, with_link=False)).is_new
    assert len(await week(kept)) == 1


async def test_only_what_overlaps_the_range_is_listed(kept: Kept) -> None:
    await kept.calendar.create(DRAFT, with_link=False)
    start, end = DRAFT.start, DRAFT.end
    minute = timedelta(minutes=1)
    ranges = [(start - minute, start), (end, end + minute), (start, start + minute), (end - minute, end + minute)]
    assert [len(await kept.calendar.events(*each)) for each in ranges] == [0, 0, 1, 1]


async def test_times_are_in_the_users_zone(kept: Kept) -> None:
    in_utc = replace(DRAFT, start=DRAFT.start.astimezone(UTC), end=DRAFT.end.astimezone(UTC))
    await kept.calendar.create(in_utc, with_link=False)
    [event] = await week(kept)
    assert event.start.isoformat() == "2026-01-05T15:00:00+01:00"


async def test_every_occurrence_of_a_series_is_listed(kept: Kept) -> None:
    kept.add_series()
    events = await week(kept)
    assert [(event.title, event.start.day, event.start.hour) for event in events] == [
        ("Standup", 5, 9),
        ("Standup", 6, 9),
        ("Standup", 7, 9),
    ]
    assert len({event.id for event in events}) == 3
    assert len({event.series for event in events}) == 1


async def test_one_occurrence_can_be_deleted(kept: Kept) -> None:
    kept.add_series()
    _, second, _ = await week(kept)
    await kept.calendar.delete(second.id)
    assert [event.start.day for event in await week(kept)] == [5, 7]


async def test_a_whole_series_can_be_deleted(kept: Kept) -> None:
    kept.add_series()
    series = (await week(kept))[0].series
    assert series is not None
    await kept.calendar.delete(series)
    assert await week(kept) == []


async def test_an_all_day_event_lasts_from_midnight_to_midnight_of_the_user(kept: Kept) -> None:
    kept.add_all_day()
    [event] = await week(kept)
    assert (event.all_day, event.start.date(), event.end.date()) == (True, date(2026, 1, 7), date(2026, 1, 9))
    assert event.start == datetime(2026, 1, 7, tzinfo=BERLIN)


async def test_busy_times_have_no_details_and_leave_out_what_leaves_the_user_free(kept: Kept) -> None:
    kept.add_all_day()
    await kept.calendar.create(DRAFT, with_link=False)
    [busy] = await kept.calendar.busy(MONDAY, MONDAY + timedelta(days=7))
    assert (busy.start, busy.end) == (DRAFT.start, DRAFT.end)
    assert set(busy.__struct_fields__) == {"calendar", "start", "end"}


async def test_an_unknown_event_cannot_be_deleted(kept: Kept) -> None:
    with pytest.raises(ToolError) as refused:
        await kept.calendar.delete("nothing-like-this")
    assert refused.value.type is ErrorType.NOT_FOUND


async def test_an_unknown_calendar_is_reported_with_those_that_exist(kept: Kept) -> None:
    with pytest.raises(ToolError) as refused:
        await kept.calendar.busy(MONDAY, MONDAY + timedelta(days=1), ["team"])
    assert refused.value.type is ErrorType.NOT_FOUND
    known = [each.name for each in await kept.calendar.calendars()]
    assert known[0] in (refused.value.suggestion or "")


async def test_primary_is_the_first_calendar_whatever_its_name(kept: Kept) -> None:
    await kept.calendar.create(DRAFT, with_link=False)
    assert len(await kept.calendar.events(MONDAY, MONDAY + timedelta(days=1), ["primary"])) == 1
