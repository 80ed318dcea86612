"""A calendar on a CalDAV server, such as Nextcloud or Radicale. The library blocks, so its calls run in threads."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote, urljoin
from zoneinfo import ZoneInfo

from antiphon.clock import Clock
from antiphon.services.calendar import failures
from antiphon.services.calendar.backend import split_id
from antiphon.services.calendar.ical import CalendarFileError, find_occurrences, make_event, remove_occurrence
from antiphon.services.http.failures import broken, failing, slow, too_many, unreachable
from antiphon.telemetry.log import get_logger
from antiphon.tools.capabilities.calendar import Busy, CalendarInfo, Event, EventDraft
from antiphon.tools.errors import ErrorType, ToolError

SERVICE: Final = "your calendar server"
RENEWING: Final = "check calendar.username, and the password in CALDAV_PASSWORD."
TIMEOUT_S: Final = 8
"""For each request. A reading call is given up earlier, at its tool's budget."""
THREADS: Final = 4
CALENDARS_KEPT_S: Final = 300.0
"""How long the list of calendars is used before it is read again: reading it takes three requests."""
ICS: Final = {"Content-Type": "text/calendar; charset=utf-8"}

Done = TypeVar("Done")
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DavAccount:
    url: str
    username: str = ""
    password: str = ""
    calendars: tuple[str, ...] = ()
    """The names of the user's own calendars, the one for new events first. Empty for all of the account."""
    others: tuple[str, ...] = ()
    """The names of calendars of other people, of which only the busy times are told."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The calendars of the account: their addresses by name."""

    own: dict[str, str]
    others: dict[str, str]
    at: float


class DavBackend:
    def __init__(self, account: DavAccount, clock: Clock, *, timeout_s: float = TIMEOUT_S) -> None:
        self._account = account
        self._clock = clock
        self._timeout_s = timeout_s
        # Threads of its own: a server that does not answer must not keep other work of the process waiting.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="caldav")
        self._local = threading.local()
        self._clients: list[Any] = []
        self._found: _Found | None = None

    def warm(self) -> None:
        """Loads the library and finds the calendars in the background: the first request takes a second otherwise."""

        def work() -> None:
            with suppress(Exception):
                self._find()

        self._threads.submit(work)

    async def aclose(self) -> None:
        """Gives up requests that are under way: a server that does not answer must not delay the end of the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            with suppress(Exception):
                client.close()

    async def calendars(self) -> Sequence[CalendarInfo]:
        found = await self._run(self._find)
        return [
            *(CalendarInfo(name, is_own=True) for name in found.own),
            *(CalendarInfo(name, is_own=False) for name in found.others),
        ]

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Event]:
        own = (await self._run(self._find)).own
        return await self._search({name: own[name] for name in calendars if name in own}, start, end, zone)

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Busy]:
        found = await self._run(self._find)
        known = {**found.others, **found.own}
        events = await self._search({name: known[name] for name in calendars if name in known}, start, end, zone)
        return [Busy(event.calendar, event.start, event.end) for event in events if event.is_busy]

    async def add(self, draft: EventDraft, zone: ZoneInfo) -> bool:
        ics = make_event(draft, self._clock.now(UTC)).ics

        def put() -> bool:
            folder = next(iter(self._find().own.values()))
            address = urljoin(folder, f"{quote(draft.uid, safe='')}.ics")
            # "If-None-Match: *" has the server refuse a second event of this name, whoever sends it.
            answer = self._client().put(address, ics, {**ICS, "If-None-Match": "*"})
            if answer.status in (409, 412):
                return False
            _check_status(answer.status)
            return True

        return await self._run(put, writes=True)

    async def remove(self, id: str, zone: ZoneInfo) -> None:
        uid, occurrence = split_id(id)

        def work() -> None:
            address, ics, etag = self._fetch(id) or self._fetch(uid) or (None, "", "")
            if address is None:
                raise failures.no_such_event()
            unchanged = {"If-Match": etag} if etag else {}
            if occurrence is None or f"UID:{id}" in ics:
                answer = self._client().request(address, "DELETE", "", unchanged)
            else:
                left = remove_occurrence(ics, occurrence)
                if left is None:
                    raise failures.no_such_event()
                answer = self._client().put(address, left.ics, {**ICS, **unchanged})
            if answer.status == 412:
                raise failures.changed_meanwhile()
            _check_status(answer.status)

        await self._run(work, writes=True)

    async def _search(self, addresses: dict[str, str], start: datetime, end: datetime, zone: ZoneInfo) -> list[Event]:
        def search(name: str, address: str) -> list[Event]:
            found = self._client().calendar(url=address).search(start=start, end=end, event=True)
            occurrences: list[Event] = []
            for each in found:
                try:
                    occurrences += find_occurrences(str(each.data), start, end, calendar=name, zone=zone)
                except CalendarFileError as error:
                    # One event that cannot be read must not hide all the others. Its text is not logged.
                    log.warning("calendar_event_unreadable", calendar=name, error=type(error).__name__)
            return occurrences

        results = await asyncio.gather(*(self._run(partial(search, *each)) for each in addresses.items()))
        return [event for result in results for event in result]

    def _fetch(self, uid: str) -> tuple[str, str, str] | None:
        """Finds an event in the user's own calendars: its address, its text and its version."""
        from caldav.lib.error import NotFoundError

        for folder in self._find().own.values():
            with suppress(NotFoundError):
                event = self._client().calendar(url=folder).get_event_by_uid(uid)
                answer = self._client().request(str(event.url))
                if answer.status == 200:
                    return str(event.url), str(answer.raw), str(answer.headers.get("ETag") or "")
        return None

    def _find(self) -> _Found:
        """Finds the calendars of the account. It may run in several threads at once, which is harmless."""
        found = self._found
        if found is not None and self._clock.monotonic() - found.at < CALENDARS_KEPT_S:
            return found
        listed = {}
        for calendar in self._client().principal().calendars():
            if "VEVENT" in (calendar.get_supported_components() or ["VEVENT"]):
                listed[str(calendar.get_display_name() or calendar.id)] = str(calendar.url)
        account = self._account
        missing = [name for name in (*account.calendars, *account.others) if name not in listed]
        if missing:
            raise ToolError(
                ErrorType.NOT_FOUND,
                f"There is no calendar called {missing[0]} on your calendar server.",
                suggestion=f"calendar.calendars and calendar.others may have: {', '.join(listed) or 'none'}.",
            )
        own = account.calendars or [name for name in listed if name not in account.others]
        self._found = _Found(
            {name: listed[name] for name in own},
            {name: listed[name] for name in account.others},
            self._clock.monotonic(),
        )
        return self._found

    def _client(self) -> Any:
        """Returns the `DAVClient` of this thread, since a client must not be shared. Its methods are untyped."""
        client = getattr(self._local, "client", None)
        if client is None:
            from caldav.davclient import DAVClient

            account = self._account
            client = DAVClient(
                account.url,
                username=account.username or None,
                password=account.password or None,
                timeout=self._timeout_s,  # type: ignore[arg-type]
                # Requests go to the server of the settings, and not to one that DNS names.
                enable_rfc6764=False,
                rate_limit_handle=False,
            )
            self._local.client = client
            self._clients.append(client)
        return client

    async def _run(self, work: Callable[[], Done], *, writes: bool = False) -> Done:
        """Runs the work in a thread. Every failure becomes a `ToolError`."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except ToolError:
            raise
        except Exception as error:
            raise _explain(error, writes=writes) from error


def _check_status(status: int) -> None:
    if status >= 500:
        raise failing(SERVICE)
    if status == 404:
        raise failures.no_such_event()
    if status >= 400:
        raise ToolError(
            ErrorType.PERMANENT,
            "Your calendar server doesn't accept that.",
            suggestion=f"It answered with status {status}.",
        )


def _explain(error: Exception, *, writes: bool) -> ToolError:
    import niquests
    from caldav.lib import error as dav

    match error:
        case niquests.exceptions.ConnectTimeout() | niquests.exceptions.Timeout() if not writes:
            return slow(SERVICE)
        case niquests.exceptions.ConnectTimeout():
            return unreachable(SERVICE)
        case niquests.exceptions.Timeout():
            return failures.unknown_outcome(SERVICE)
        case niquests.exceptions.ConnectionError():
            return failures.unknown_outcome(SERVICE) if writes and _was_sent(error) else unreachable(SERVICE)
        case niquests.exceptions.RequestException():
            return broken(SERVICE)
        case dav.RateLimitError():
            wait_s: Any = getattr(error, "retry_after_seconds", None)
            return too_many(SERVICE, wait_s)
        case dav.AuthorizationError():
            return failures.refused(SERVICE, RENEWING)
        case dav.NotFoundError():
            return ToolError(
                ErrorType.NOT_FOUND,
                "I can't find your calendars on the server.",
                suggestion="calendar.url should be the address that the server shows for CalDAV.",
            )
        case dav.DAVError():
            return failing(SERVICE)
    # The library meets an answer that is not XML with whatever error comes of it.
    return broken(SERVICE)


def _was_sent(error: Exception) -> bool:
    """Whether a request may have reached the server before its connection was lost."""
    return "Max retries exceeded" not in str(error) and "refused" not in str(error)
