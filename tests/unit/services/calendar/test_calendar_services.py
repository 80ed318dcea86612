"""How Google, CalDAV servers and Zoom fail, and what the user and the model are told."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from antiphon.authoring.testing import StillClock
from antiphon.config import Calendar
from antiphon.services.calendar import rest
from antiphon.services.calendar.dav import DavAccount, DavBackend
from antiphon.services.calendar.google import Credentials, GoogleBackend, RefreshToken, ServiceAccount
from antiphon.services.calendar.links import JitsiLinks, ZoomAccount, ZoomLinks
from antiphon.services.calendar.service import open_calendar
from antiphon.services.calendar.settings import CalendarSettingsError
from antiphon.services.calendar.user_calendar import UserCalendar
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.capabilities.calendar import EventDraft, LinkProvider
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.google_calendar import (
    ACCESS,
    BACKEND,
    EVENTS,
    FORBIDDEN,
    FREE_BUSY,
    RATE_LIMITED,
    REFRESH,
    UNAUTHORIZED,
    GoogleCalendar,
)
from tests.fakes.local_http import Received, Reply, Service, serve, serving, without_tls

pytestmark = pytest.mark.real_time

UTC_ZONE = ZoneInfo("UTC")
START = datetime(2026, 1, 5, tzinfo=UTC)
END = START + timedelta(days=1)
DRAFT = EventDraft("antiphon-1", "Tea", START, START + timedelta(hours=1), attendees=("bob@example.org",))
TRANSIENT, AUTH, RATE = ErrorType.TRANSIENT, ErrorType.AUTH, ErrorType.RATE_LIMIT
SLOW = Reply({}, delay_s=0.6)
JITSI = JitsiLinks("https://meet.example.org", lambda: "room")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "TIMEOUT_S", 0.3)


@pytest.fixture
async def google() -> AsyncIterator[GoogleCalendar]:
    async with serving(GoogleCalendar()) as service:
        yield service


def google_backend(google: GoogleCalendar, credentials: Credentials, **options: Any) -> GoogleBackend:
    return GoogleBackend(
        credentials, StillClock(), api=google.api, tokens=google.token_url, network=without_tls(), **options
    )


@asynccontextmanager
async def calendar_of(google: GoogleCalendar, **options: Any) -> AsyncIterator[UserCalendar]:
    credentials = options.pop("credentials", RefreshToken("id", "secret", REFRESH))
    backend = google_backend(google, credentials, **options)
    try:
        yield UserCalendar(backend, JITSI, UTC_ZONE)
    finally:
        await backend.aclose()


async def failure_of(action: Any) -> ToolError:
    with pytest.raises(ToolError) as refused:
        await action
    return refused.value


@pytest.mark.parametrize(
    ("answer", "type", "retryable"),
    [
        (UNAUTHORIZED, AUTH, False),
        (FORBIDDEN, AUTH, False),
        (RATE_LIMITED, RATE, True),
        (Reply({"error": {"code": 429}}, 429, {"Retry-After": "12"}), RATE, True),
        (BACKEND, TRANSIENT, True),
        (Reply(b"<html>busy", 503), TRANSIENT, True),
        (Reply(b'{"items": ['), TRANSIENT, True),
        (Reply(b"[1, 2]"), TRANSIENT, True),
        (Reply({"items": "none"}), TRANSIENT, True),
        (Reply({"items": [{"id": "x", "start": {"dateTime": "soon"}, "end": {}}]}), TRANSIENT, True),
        (Reply(b"\xff\xfe"), TRANSIENT, True),
        (SLOW, TRANSIENT, True),
        (Reply({"error": {"code": 400}}, 400), ErrorType.PERMANENT, False),
    ],
)
async def test_each_failure_of_google_has_its_type(
    google: GoogleCalendar, answer: Reply, type: ErrorType, retryable: bool
) -> None:
    google.replies[EVENTS] = answer
    async with calendar_of(google) as calendar:
        failure = await failure_of(calendar.events(START, END))
    assert (failure.type, failure.retryable, failure.partial_side_effects) == (type, retryable, False)
    assert failure.message.endswith(".")
    assert "Google" in failure.message


async def test_the_wait_that_google_asks_for_is_passed_on(google: GoogleCalendar) -> None:
    google.replies[FREE_BUSY] = Reply({}, 429, {"Retry-After": "12"})
    async with calendar_of(google) as calendar:
        assert (await failure_of(calendar.busy(START, END))).retry_after_s == 12


async def test_free_busy_names_a_calendar_that_does_not_exist(google: GoogleCalendar) -> None:
    async with calendar_of(google, others=("team@example.org",)) as calendar:
        failure = await failure_of(calendar.busy(START, END, ["team@example.org"]))
    assert (failure.type, failure.message) == (
        ErrorType.NOT_FOUND,
        "I don't know a calendar called team@example.org.",
    )


async def test_of_other_peoples_calendars_only_the_busy_times_are_read(google: GoogleCalendar) -> None:
    google.put(
        "team@example.org",
        {
            "id": "secret",
            "summary": "Secret",
            "start": {"dateTime": "2026-01-05T10:00:00Z"},
            "end": {"dateTime": "2026-01-05T11:00:00Z"},
        },
    )
    async with calendar_of(google, others=("team@example.org",)) as calendar:
        assert await calendar.events(START, END, ["team@example.org"]) == []
        assert len(await calendar.busy(START, END, ["team@example.org"])) == 1
    assert not any(path.endswith("/events") for path in google.server.paths)


async def test_an_expired_access_token_is_renewed_once(google: GoogleCalendar) -> None:
    async with calendar_of(google) as calendar:
        await calendar.events(START, END)
        google.tokens = {"ya29.another"}
        assert await calendar.events(START, END) == []
    assert google.server.paths.count("/token") == 2


async def test_a_revoked_refresh_token_is_an_auth_error(google: GoogleCalendar) -> None:
    async with calendar_of(google, credentials=RefreshToken("id", "secret", "revoked")) as calendar:
        failure = await failure_of(calendar.events(START, END))
    assert failure.type is AUTH
    assert "GOOGLE_CALENDAR_REFRESH_TOKEN" in (failure.suggestion or "")


async def test_an_answer_in_several_pages_is_read_to_the_end(google: GoogleCalendar) -> None:
    for n in range(300):
        at = START + timedelta(minutes=n)
        times = {"start": {"dateTime": at.isoformat()}, "end": {"dateTime": (at + timedelta(minutes=1)).isoformat()}}
        google.put("primary", {"id": f"e{n}", "summary": str(n), **times})
    async with calendar_of(google) as calendar:
        assert len(await calendar.events(START, END)) == 300


async def test_a_write_without_an_answer_may_have_been_done(google: GoogleCalendar) -> None:
    google.replies[EVENTS] = SLOW
    async with calendar_of(google) as calendar:
        failure = await failure_of(calendar.create(DRAFT, with_link=False))
    assert (failure.type, failure.retryable, failure.partial_side_effects) == (TRANSIENT, False, True)
    assert failure.message == "Google Calendar didn't answer, so I don't know whether that was done."


async def test_a_write_whose_answer_is_too_large_may_have_been_done(
    google: GoogleCalendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "MAX_BYTES", 100)
    google.replies[EVENTS] = Reply(b"x" * 101)
    async with calendar_of(google) as calendar:
        assert (await failure_of(calendar.create(DRAFT, with_link=False))).partial_side_effects


async def test_a_write_that_is_redirected_was_not_done(google: GoogleCalendar) -> None:
    google.replies[EVENTS] = Reply(status=307, headers={"location": "/elsewhere"})
    async with calendar_of(google) as calendar:
        failure = await failure_of(calendar.create(DRAFT, with_link=False))
    assert (failure.type, failure.partial_side_effects) == (ErrorType.PERMANENT, False)
    assert "/elsewhere" not in google.server.paths


async def test_no_network_is_not_an_unknown_outcome() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        backend = GoogleBackend(RefreshToken("a", "b", "c"), StillClock(), api=url, tokens=url, network=without_tls())
        failure = await failure_of(backend.add(DRAFT, UTC_ZONE))
        await backend.aclose()
    assert (failure.type, failure.partial_side_effects) == (TRANSIENT, False)
    assert failure.message == "I can't reach Google Calendar at the moment."


async def test_a_service_account_signs_its_request_for_a_token(google: GoogleCalendar, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65_537, 2_048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    path = tmp_path / "key.json"
    fields = {"client_email": "bot@example.iam", "private_key": pem, "token_uri": google.token_url}
    path.write_bytes(msgspec.json.encode(fields))
    async with calendar_of(google, credentials=ServiceAccount.read(path)) as calendar:
        assert await calendar.events(START, END) == []
    assertion = google.server.received[0].form["assertion"]
    header, claims, signature = assertion.split(".")
    assert (bool(header), bool(claims), len(signature)) == (True, True, 342)


# CalDAV servers that fail.


@pytest.mark.parametrize(
    ("answer", "type"),
    [
        (Reply(b"", 401), AUTH),
        (Reply(b"", 403), AUTH),
        (Reply(b"", 429, {"Retry-After": "7"}), RATE),
        (Reply(b"oops", 500), TRANSIENT),
        (Reply(b"<html><broken", 207), TRANSIENT),
        (Reply(b"not a calendar"), TRANSIENT),
        (Reply(b"", 207, delay_s=1.5), TRANSIENT),
        (Reply(b"", 404), ErrorType.NOT_FOUND),
    ],
)
async def test_each_failure_of_a_caldav_server_has_its_type(answer: Reply, type: ErrorType) -> None:
    async with serve(lambda request: answer) as server:
        backend = DavBackend(DavAccount(f"{server.url}/", "ann", "pw"), StillClock(), timeout_s=1)
        failure = await failure_of(backend.calendars())
        await backend.aclose()
    assert failure.type is type
    assert failure.message.endswith(".")
    assert failure.retry_after_s == {ErrorType.RATE_LIMIT: 7.0}.get(type, failure.retry_after_s)


async def test_a_caldav_server_that_is_not_there_is_reported_as_such() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        backend = DavBackend(DavAccount(url), StillClock(), timeout_s=1)
        failure = await failure_of(backend.calendars())
        await backend.aclose()
    assert (failure.type, failure.message) == (TRANSIENT, "I can't reach your calendar server at the moment.")


# Zoom.


class Zoom(Service):
    def __init__(self) -> None:
        super().__init__()
        self.meetings: dict[str, Any] = {}

    def answer(self, request: Received) -> Reply:
        if request.path == "/oauth/token":
            is_known = request.headers.get("authorization", "").startswith("Basic ")
            form = request.form
            if not is_known or (form["grant_type"], form["account_id"]) != ("account_credentials", "acc"):
                return Reply({"reason": "Invalid client_id or client_secret", "error": "invalid_client"}, 400)
            return Reply({"access_token": ACCESS, "token_type": "bearer", "expires_in": 3599})
        if request.method == "DELETE":
            self.meetings.pop(request.path.rpartition("/")[2])
            return Reply(status=204)
        id = str(85_000_000_000 + len(self.meetings))
        self.meetings[id] = request.json
        return Reply({"id": int(id), "join_url": f"https://zoom.example/j/{id}?pwd=abc", **request.json}, 201)


@pytest.fixture
async def zoom() -> AsyncIterator[Zoom]:
    async with serving(Zoom()) as service:
        yield service


@asynccontextmanager
async def links_of(zoom: Zoom, account: str = "acc") -> AsyncIterator[ZoomLinks]:
    links = ZoomLinks(
        ZoomAccount(account, "id", "secret"),
        StillClock(),
        api=f"{zoom.server.url}/v2",
        tokens=f"{zoom.server.url}/oauth/token",
        network=without_tls(),
    )
    try:
        yield links
    finally:
        await links.aclose()


async def test_zoom_makes_a_meeting_at_the_time_of_the_event(zoom: Zoom) -> None:
    async with links_of(zoom) as links:
        link = await links.make(DRAFT)
    [meeting] = zoom.meetings.values()
    assert (meeting["topic"], meeting["type"], meeting["start_time"], meeting["duration"]) == (
        "Tea",
        2,
        "2026-01-05T00:00:00Z",
        60,
    )
    assert (link.provider, link.url) == (LinkProvider.ZOOM, "https://zoom.example/j/85000000000?pwd=abc")


async def test_the_meeting_of_an_event_that_was_not_stored_is_deleted(zoom: Zoom, google: GoogleCalendar) -> None:
    google.replies[EVENTS] = FORBIDDEN
    async with links_of(zoom) as links:
        backend = google_backend(google, RefreshToken("a", "b", REFRESH))
        failure = await failure_of(UserCalendar(backend, links, UTC_ZONE).create(DRAFT, with_link=True))
        await backend.aclose()
    assert failure.type is AUTH
    assert zoom.meetings == {}


async def test_wrong_credentials_of_zoom_are_reported_before_anything_is_stored(
    zoom: Zoom, google: GoogleCalendar
) -> None:
    async with links_of(zoom, account="wrong") as links:
        backend = google_backend(google, RefreshToken("a", "b", REFRESH))
        failure = await failure_of(UserCalendar(backend, links, UTC_ZONE).create(DRAFT, with_link=True))
        await backend.aclose()
    assert (failure.type, failure.message) == (AUTH, "Zoom doesn't let me in.")
    assert google.titles() == []


# Settings.


@pytest.mark.parametrize(
    ("settings", "env", "told"),
    [
        ({"provider": "caldav"}, {}, "calendar.url"),
        ({"provider": "caldav", "url": "https://dav.example", "username": "ann"}, {}, "CALDAV_PASSWORD"),
        ({"provider": "google"}, {}, "GOOGLE_CALENDAR_CLIENT_ID"),
        ({"provider": "google"}, {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json"}, "No such file"),
    ],
)
async def test_a_missing_setting_or_secret_is_named(settings: dict[str, Any], env: dict[str, str], told: str) -> None:
    with pytest.raises(CalendarSettingsError, match=told):
        async with open_calendar(Calendar(**settings), MemoryDatabase().calendar, StillClock(), env):
            pass


async def test_the_account_of_the_server_is_not_for_other_users() -> None:
    settings = Calendar(provider="caldav", url="http://127.0.0.1:9/", users=("local",))
    async with open_calendar(settings, MemoryDatabase().calendar, StillClock(), {}) as service:
        failure = await failure_of(service.calendar_of("mallory", UTC_ZONE).events(START, END))
        assert (failure.type, failure.message) == (AUTH, "There is no calendar for you on this server.")
        failure = await failure_of(service.calendar_of("mallory", UTC_ZONE).create(DRAFT, with_link=False))
        assert failure.type is AUTH


async def test_local_calendars_are_separate_for_each_user() -> None:
    store = MemoryDatabase().calendar
    async with open_calendar(Calendar(), store, StillClock(), {}) as service:
        await service.calendar_of("ann", UTC_ZONE).create(DRAFT, with_link=False)
        assert await service.calendar_of("bob", UTC_ZONE).events(START, END) == []
        assert len(await service.calendar_of("ann", UTC_ZONE).events(START, END)) == 1


async def test_jitsi_rooms_have_names_that_cannot_be_guessed() -> None:
    async with open_calendar(Calendar(), MemoryDatabase().calendar, StillClock(), {}) as service:
        calendar = service.calendar_of("ann", UTC_ZONE)
        drafts = [EventDraft(f"antiphon-{n}", "Tea", START, END) for n in range(3)]
        made = await asyncio.gather(*(calendar.create(draft, with_link=True) for draft in drafts))
    rooms = {each.link.url.rpartition("/")[2] for each in made if each.link}
    assert len(rooms) == 3
    assert min(map(len, rooms)) >= 22
