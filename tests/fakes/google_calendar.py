"""A server that answers as Google's calendar and OAuth APIs do, with the events in memory."""

from datetime import datetime
from typing import Any, Final

from tests.fakes.local_http import Received, Reply, Service

CALENDAR: Final = "/calendar/v3"
EVENTS: Final = f"{CALENDAR}/calendars/primary/events"
FREE_BUSY: Final = f"{CALENDAR}/freeBusy"
ACCESS: Final = "ya29.an-access-token"
REFRESH: Final = "1//a-refresh-token"


def error(status: int, reason: str, message: str, domain: str = "global") -> Reply:
    """An error as the API writes it."""
    one = {"domain": domain, "reason": reason, "message": message}
    return Reply({"error": {"errors": [one], "code": status, "message": message}}, status)


UNAUTHORIZED: Final = error(401, "authError", "Invalid Credentials")
RATE_LIMITED: Final = error(403, "rateLimitExceeded", "Rate Limit Exceeded", "usageLimits")
FORBIDDEN: Final = error(403, "requiredAccessLevel", "You need to have writer access to this calendar.", "calendar")
NOT_FOUND: Final = error(404, "notFound", "Not Found")
DUPLICATE: Final = error(409, "duplicate", "The requested identifier already exists.")
GONE: Final = error(410, "deleted", "Resource has been deleted")
BACKEND: Final = error(500, "backendError", "Backend Error")


class GoogleCalendar(Service):
    def __init__(self) -> None:
        super().__init__()
        self.events: dict[str, dict[str, dict[str, Any]]] = {"primary": {}}
        """The events of each calendar, by id. Occurrences of a series are events with a recurringEventId."""
        self.tokens = {ACCESS}

    @property
    def api(self) -> str:
        return f"{self.server.url}{CALENDAR}"

    @property
    def token_url(self) -> str:
        return f"{self.server.url}/token"

    def put(self, calendar: str, event: dict[str, Any]) -> None:
        self.events.setdefault(calendar, {})[event["id"]] = {"status": "confirmed", **event}

    def titles(self) -> list[str]:
        stored = [event for events in self.events.values() for event in events.values()]
        return sorted(event["summary"] for event in stored if event["status"] != "cancelled")

    def answer(self, request: Received) -> Reply:
        if request.path == "/token":
            return self._token(request)
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return UNAUTHORIZED
        parts = request.path.removeprefix(f"{CALENDAR}/").split("/")
        match (request.method, parts):
            case ("POST", ["freeBusy"]):
                return self._free_busy(request.json)
            case ("GET", ["calendars", name, "events"]) if name in self.events:
                return self._list(name, request)
            case ("POST", ["calendars", name, "events"]) if name in self.events:
                return self._insert(name, request.json)
            case (_, ["calendars", name, "events", id]) if id in self.events.get(name, {}):
                return self._one(request, name, id)
        return NOT_FOUND

    def _token(self, request: Received) -> Reply:
        form = request.form
        is_known = form.get("refresh_token") == REFRESH or "assertion" in form
        if not is_known:
            return Reply({"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400)
        [access] = self.tokens
        return Reply({"access_token": access, "expires_in": 3599, "token_type": "Bearer"})

    def _free_busy(self, body: dict[str, Any]) -> Reply:
        start, end = _moment(body["timeMin"]), _moment(body["timeMax"])
        told: dict[str, Any] = {}
        for item in body["items"]:
            name = item["id"]
            if name not in self.events:
                told[name] = {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
                continue
            found = [event for event in self._between(name, start, end) if event.get("transparency") != "transparent"]
            busy = [{"start": _start(event), "end": _end(event)} for event in found]
            told[name] = {"busy": busy}
        return Reply(
            {"kind": "calendar#freeBusy", "timeMin": body["timeMin"], "timeMax": body["timeMax"], "calendars": told}
        )

    def _list(self, name: str, request: Received) -> Reply:
        found = self._between(name, _moment(request.query["timeMin"]), _moment(request.query["timeMax"]))
        size, at = int(request.query["maxResults"]), int(request.query.get("pageToken", "0"))
        page: dict[str, Any] = {"kind": "calendar#events", "timeZone": "UTC", "items": found[at : at + size]}
        if at + size < len(found):
            page["nextPageToken"] = str(at + size)
        return Reply(page)

    def _insert(self, name: str, event: dict[str, Any]) -> Reply:
        if event["id"] in self.events[name]:
            return DUPLICATE
        stored = {"kind": "calendar#event", "status": "confirmed", **event}
        self.events[name][event["id"]] = stored
        return Reply(stored)

    def _one(self, request: Received, name: str, id: str) -> Reply:
        stored = self.events[name][id]
        if request.method == "GET":
            return Reply(stored)
        if request.method == "PUT":
            self.events[name][id] = {**stored, **request.json}
            return Reply(self.events[name][id])
        if stored["status"] == "cancelled":
            return GONE
        for each in self.events[name].values():
            if each["id"] == id or each.get("recurringEventId") == id:
                each["status"] = "cancelled"
        return Reply(status=204)

    def _between(self, name: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
        events = [event for event in self.events[name].values() if event["status"] != "cancelled"]
        found = [event for event in events if _moment(_start(event)) < end and _moment(_end(event)) > start]
        return sorted(found, key=lambda event: _moment(_start(event)))


def _start(event: dict[str, Any]) -> str:
    return str(event["start"].get("dateTime") or f"{event['start']['date']}T00:00:00Z")


def _end(event: dict[str, Any]) -> str:
    return str(event["end"].get("dateTime") or f"{event['end']['date']}T00:00:00Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
