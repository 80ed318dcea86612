"""Google Calendar by its REST API: freeBusy for busy times, events for the rest."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

import msgspec

from antiphon.clock import Clock
from antiphon.services.calendar import failures
from antiphon.services.calendar.ical import UNTITLED, overlaps
from antiphon.services.calendar.rest import AccessToken, RestClient, StatusError
from antiphon.services.calendar.settings import CalendarSettingsError
from antiphon.services.http.failures import broken, failing
from antiphon.tools.capabilities.calendar import UID_PREFIX, Busy, CalendarInfo, Event, EventDraft

if TYPE_CHECKING:
    from antiphon.services.http.network import Network

API: Final = "https://www.googleapis.com/calendar/v3"
TOKENS: Final = "https://oauth2.googleapis.com/token"
SCOPE: Final = "https://www.googleapis.com/auth/calendar"
SERVICE: Final = "Google Calendar"
RENEWING: Final = "renew GOOGLE_CALENDAR_REFRESH_TOKEN, or check the service account."
PRIMARY: Final = "primary"
PAGE: Final = 250
MAX_PAGES: Final = 8
JWT_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_S: Final = 3600


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """The access of a person who has allowed it, once, in a browser."""

    client_id: str
    client_secret: str
    refresh_token: str

    def form(self, now_s: int) -> dict[str, str]:
        return {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "refresh_token": self.refresh_token,
        }


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The access of an account for programs, which people share their calendars with."""

    email: str
    private_key: str
    token_url: str

    @classmethod
    def read(cls, path: Path) -> "ServiceAccount":
        """Reads the key file that Google Cloud gives out. Raises `CalendarSettingsError`."""
        try:
            key = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
            return cls(str(key["client_email"]), str(key["private_key"]), str(key.get("token_uri") or TOKENS))
        except OSError as error:
            raise CalendarSettingsError(f"GOOGLE_APPLICATION_CREDENTIALS: {path}: {error.strerror}.") from None
        except (msgspec.MsgspecError, KeyError):
            raise CalendarSettingsError(
                f"GOOGLE_APPLICATION_CREDENTIALS: {path} is not the JSON key of a service account."
            ) from None

    def form(self, now_s: int) -> dict[str, str]:
        return {"grant_type": JWT_GRANT, "assertion": self._assertion(now_s)}

    def _assertion(self, now_s: int) -> str:
        """Signs the request for a token, as RFC 7523 says."""
        try:
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import padding, rsa
        except ImportError:
            raise CalendarSettingsError(
                "a Google service account needs a package. Run: pip install 'antiphon[google-calendar]'"
            ) from None
        claims = {
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_url,
            "iat": now_s,
            "exp": now_s + ASSERTION_S,
        }
        signed = b".".join(_base64url(msgspec.json.encode(part)) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        try:
            key = serialization.load_pem_private_key(self.private_key.encode(), password=None)
        except ValueError:
            raise CalendarSettingsError("the private key of the Google service account cannot be read.") from None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise CalendarSettingsError("the private key of the Google service account is not an RSA key.")
        signature = key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return b".".join([signed, _base64url(signature)]).decode()


Credentials = RefreshToken | ServiceAccount


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class GoogleBackend:
    def __init__(
        self,
        credentials: Credentials,
        clock: Clock,
        *,
        calendars: tuple[str, ...] = (),
        others: tuple[str, ...] = (),
        api: str = API,
        tokens: str = TOKENS,
        network: "Network | None" = None,
    ) -> None:
        self._own = calendars or (PRIMARY,)
        self._others = others
        self._api = api.rstrip("/")
        self._clock = clock
        self._credentials = credentials
        self._tokens = credentials.token_url if isinstance(credentials, ServiceAccount) else tokens
        token = AccessToken(self._renew, clock)
        self._client = RestClient(SERVICE, RENEWING, token, servers=(self._api, self._tokens), network=network)

    async def _renew(self) -> Mapping[str, Any]:
        form = self._credentials.form(self._clock.now_ms() // 1000)
        return await self._client.fetch_token(self._tokens, form)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def calendars(self) -> Sequence[CalendarInfo]:
        return [
            *(CalendarInfo(name, is_own=True) for name in self._own),
            *(CalendarInfo(name, is_own=False) for name in self._others),
        ]

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Event]:
        found: list[Event] = []
        for name in calendars:
            items = await self._list(name, start, end)
            found += [_event(item, name, zone) for item in items if item.get("status") != "cancelled"]
        return [event for event in found if overlaps(event.start, event.end, start, end)]

    async def _list(self, calendar: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
        params = {
            "timeMin": _moment(start),
            "timeMax": _moment(end),
            "singleEvents": "true",
            "orderBy": "startTime",
            "maxResults": str(PAGE),
        }
        items: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = await self._client.send("GET", f"{self._events(calendar)}", params=params)
            listed = page.get("items", [])
            if not isinstance(listed, list):
                raise broken(SERVICE)
            items += [each for each in listed if isinstance(each, dict)]
            token = page.get("nextPageToken")
            if not isinstance(token, str):
                break
            params["pageToken"] = token
        return items

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str], zone: ZoneInfo) -> list[Busy]:
        body = {
            "timeMin": _moment(start),
            "timeMax": _moment(end),
            "items": [{"id": name} for name in calendars],
        }
        answer = await self._client.send("POST", f"{self._api}/freeBusy", json=body)
        told = answer.get("calendars")
        if not isinstance(told, dict):
            raise broken(SERVICE)
        # "primary" comes back under its own name in some accounts, so a single answer belongs to a single question.
        answers = dict(zip(calendars, told.values(), strict=False)) if len(told) == len(calendars) == 1 else told
        return [busy for name in calendars for busy in _busy(answers.get(name), name, list(calendars), zone)]

    async def add(self, draft: EventDraft, zone: ZoneInfo) -> bool:
        calendar = self._own[0]
        body = _body(draft, zone)
        try:
            await self._client.send(
                "POST", self._events(calendar), params={"sendUpdates": "all"}, json=body, writes=True, expect=(409,)
            )
        except StatusError:
            return await self._revive(calendar, body)
        return True

    async def _revive(self, calendar: str, body: dict[str, Any]) -> bool:
        """Google keeps the id of a deleted event, so the same event is created again by changing the old one."""
        address = f"{self._events(calendar)}/{body['id']}"
        stored = await self._client.send("GET", address)
        if stored.get("status") != "cancelled":
            return False
        await self._client.send(
            "PUT", address, params={"sendUpdates": "all"}, json={**body, "status": "confirmed"}, writes=True
        )
        return True

    async def remove(self, id: str, zone: ZoneInfo) -> None:
        for calendar in self._own:
            address = f"{self._events(calendar)}/{quote(_google_id(id), safe='')}"
            try:
                await self._client.send(
                    "DELETE", address, params={"sendUpdates": "all"}, writes=True, expect=(404, 410)
                )
                return
            except StatusError:
                continue
        raise failures.no_such_event()

    def _events(self, calendar: str) -> str:
        return f"{self._api}/calendars/{quote(calendar, safe='')}/events"


def _google_id(uid: str) -> str:
    """Makes an id that Google accepts (a to v and digits) from the uid of a draft. Google's own ids are kept."""
    return sha256(uid.encode()).hexdigest()[:40] if uid.startswith(UID_PREFIX) else uid


def _body(draft: EventDraft, zone: ZoneInfo) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": _google_id(draft.uid),
        "summary": draft.title,
        "start": {"dateTime": draft.start.isoformat(), "timeZone": zone.key},
        "end": {"dateTime": draft.end.isoformat(), "timeZone": zone.key},
        "attendees": [{"email": address} for address in draft.attendees],
    }
    notes = [draft.description] if draft.description else []
    if draft.link is not None:
        body["location"] = draft.link.url
    return {**body, **({"description": notes[0]} if notes else {})}


def _busy(answer: Any, name: str, known: list[str], zone: ZoneInfo) -> list[Busy]:
    if not isinstance(answer, dict):
        raise broken(SERVICE)
    reasons = [each.get("reason") for each in answer.get("errors") or () if isinstance(each, dict)]
    if "notFound" in reasons:
        raise failures.unknown_calendar(name, [each for each in known if each != name])
    if reasons:
        raise failing(SERVICE)
    try:
        return [Busy(name, _parse(each["start"], zone), _parse(each["end"], zone)) for each in answer.get("busy", ())]
    except (KeyError, TypeError, ValueError):
        raise broken(SERVICE) from None


def _event(item: dict[str, Any], calendar: str, zone: ZoneInfo) -> Event:
    try:
        start, end = item["start"], item["end"]
        all_day = "date" in start
        attendees = [each for each in item.get("attendees") or () if isinstance(each, dict)]
        series = item.get("recurringEventId")
        return Event(
            id=str(item["id"]),
            calendar=calendar,
            title=str(item.get("summary") or UNTITLED),
            start=_parse(start["date"] if all_day else start["dateTime"], zone),
            end=_parse(end["date"] if all_day else end["dateTime"], zone),
            all_day=all_day,
            is_busy=item.get("transparency") != "transparent",
            attendees=tuple(str(each.get("email") or "") for each in attendees),
            description=str(item.get("description") or ""),
            link=item.get("hangoutLink") or item.get("location"),
            series=None if series is None else str(series),
        )
    except (KeyError, TypeError, ValueError):
        raise broken(SERVICE) from None


def _parse(text: str, zone: ZoneInfo) -> datetime:
    """Parses a moment, or a day, which starts at midnight in the user's zone."""
    if len(text) == len("2026-01-01"):
        return datetime.combine(date.fromisoformat(text), time(), zone)
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(zone)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
