"""Opens the calendar that the settings choose, and offers each user theirs."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from antiphon.clock import Clock
from antiphon.config import Calendar as CalendarSettings
from antiphon.services.calendar.backend import CalendarBackend, NoCalendar
from antiphon.services.calendar.dav import DavAccount, DavBackend
from antiphon.services.calendar.google import Credentials, GoogleBackend, RefreshToken, ServiceAccount
from antiphon.services.calendar.links import JitsiLinks, MeetingLinks, ZoomAccount, ZoomLinks
from antiphon.services.calendar.local import LocalBackend
from antiphon.services.calendar.settings import CalendarSettingsError
from antiphon.services.calendar.user_calendar import UserCalendar
from antiphon.storage.calendar import CalendarStore
from antiphon.tools.capabilities.calendar import Calendar
from antiphon.tools.context import SessionView, ToolView

EVERYONE: Final = "*"


class CalendarService:
    """The calendars of a process. With a shared account, only the users that the settings name may use it."""

    def __init__(
        self,
        settings: CalendarSettings,
        store: CalendarStore,
        clock: Clock,
        *,
        account: CalendarBackend | None,
        links: MeetingLinks,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._account = account
        self._links = links

    def offer(self, session: SessionView, tool: ToolView) -> Calendar:
        return self.calendar_of(session.user, session.zone)

    def calendar_of(self, user: str, zone: ZoneInfo) -> Calendar:
        return UserCalendar(self._backend_of(user), self._links, zone)

    def _backend_of(self, user: str) -> CalendarBackend:
        if self._account is None:
            return LocalBackend(self._store, user, self._clock)
        if EVERYONE in self._settings.users or user in self._settings.users:
            return self._account
        return NoCalendar()


@asynccontextmanager
async def open_calendar(
    settings: CalendarSettings, store: CalendarStore, clock: Clock, env: Mapping[str, str]
) -> AsyncIterator[CalendarService]:
    """Opens the calendar. Raises `CalendarSettingsError` if a setting or a secret is missing."""
    async with AsyncExitStack() as stack:
        account: CalendarBackend | None = None
        if settings.provider == "caldav":
            dav = DavBackend(dav_account(settings, env), clock)
            stack.push_async_callback(dav.aclose)
            dav.warm()
            account = dav
        elif settings.provider == "google":
            google = GoogleBackend(google_credentials(env), clock, calendars=settings.calendars, others=settings.others)
            stack.push_async_callback(google.aclose)
            account = google
        zoom = ZoomAccount.from_environment(env)
        links: MeetingLinks = JitsiLinks(settings.jitsi, lambda: secrets.token_urlsafe(24))
        if zoom is not None:
            zoom_links = ZoomLinks(zoom, clock)
            stack.push_async_callback(zoom_links.aclose)
            links = zoom_links
        yield CalendarService(settings, store, clock, account=account, links=links)


def dav_account(settings: CalendarSettings, env: Mapping[str, str]) -> DavAccount:
    if not settings.url:
        raise CalendarSettingsError(
            'calendar.provider is "caldav", and calendar.url is not set. Set it to the address that the server shows '
            "for CalDAV."
        )
    password = env.get("CALDAV_PASSWORD", "")
    if settings.username and not password:
        raise CalendarSettingsError(
            "calendar.username is set, and CALDAV_PASSWORD is not. Put the password into that environment variable."
        )
    if find_spec("caldav") is None:
        raise CalendarSettingsError(
            "calendar.provider is \"caldav\", which needs a package. Run: pip install 'antiphon[caldav]'"
        )
    return DavAccount(settings.url, settings.username, password, settings.calendars, settings.others)


def google_credentials(env: Mapping[str, str]) -> Credentials:
    names = ("GOOGLE_CALENDAR_CLIENT_ID", "GOOGLE_CALENDAR_CLIENT_SECRET", "GOOGLE_CALENDAR_REFRESH_TOKEN")
    values = [env.get(name, "") for name in names]
    if all(values):
        return RefreshToken(*values)
    if key := env.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return ServiceAccount.read(Path(key).expanduser())
    missing = next(name for name, value in zip(names, values, strict=True) if not value)
    raise CalendarSettingsError(
        f'calendar.provider is "google", and {missing} is not set. Set {", ".join(names)}, or '
        "GOOGLE_APPLICATION_CREDENTIALS with the path of a service account's key."
    )
