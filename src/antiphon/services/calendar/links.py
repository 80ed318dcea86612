"""Links to meetings: Zoom if it is configured, else a Jitsi room whose name nobody can guess."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlsplit

from antiphon.clock import Clock
from antiphon.services.calendar.rest import AccessToken, RestClient
from antiphon.tools.capabilities.calendar import EventDraft, LinkProvider, MeetingLink
from antiphon.tools.errors import ToolError

if TYPE_CHECKING:
    from antiphon.services.http.network import Network

ZOOM_API: Final = "https://api.zoom.us/v2"
ZOOM_TOKENS: Final = "https://zoom.us/oauth/token"
SCHEDULED: Final = 2
"""Zoom's type of a meeting at a fixed time."""
ZOOM: Final = "Zoom"
RENEW_ZOOM: Final = "check ZOOM_ACCOUNT_ID, ZOOM_CLIENT_ID and ZOOM_CLIENT_SECRET."


class MeetingLinks(Protocol):
    async def make(self, draft: EventDraft) -> MeetingLink:
        """Makes a link for an event that is about to be stored. Raises `ToolError`."""
        ...

    async def drop(self, link: MeetingLink) -> None:
        """Gives up a link whose event was not stored. It never fails: an unused meeting harms nobody."""
        ...


class JitsiLinks:
    """Jitsi needs no account: whoever knows the name of a room may enter it."""

    def __init__(self, server: str, new_token: Callable[[], str]) -> None:
        self._server = server.rstrip("/")
        self._new_token = new_token
        """At least 128 random bits, since the name is all that protects the room."""

    async def make(self, draft: EventDraft) -> MeetingLink:
        return MeetingLink(f"{self._server}/{self._new_token()}", LinkProvider.JITSI)

    async def drop(self, link: MeetingLink) -> None:
        """Does nothing: a room exists only while somebody is in it."""


@dataclass(frozen=True, slots=True)
class ZoomAccount:
    """A server-to-server OAuth app of a Zoom account."""

    account_id: str
    client_id: str
    client_secret: str

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "ZoomAccount | None":
        values = [env.get(name, "") for name in ("ZOOM_ACCOUNT_ID", "ZOOM_CLIENT_ID", "ZOOM_CLIENT_SECRET")]
        return cls(*values) if all(values) else None


class ZoomLinks:
    def __init__(
        self,
        account: ZoomAccount,
        clock: Clock,
        *,
        api: str = ZOOM_API,
        tokens: str = ZOOM_TOKENS,
        network: "Network | None" = None,
    ) -> None:
        self._api = api
        token = AccessToken(lambda: self._renew(account, tokens), clock)
        self._client = RestClient(ZOOM, RENEW_ZOOM, token, servers=(api, tokens), network=network)

    async def _renew(self, account: ZoomAccount, tokens: str) -> Mapping[str, Any]:
        form = {"grant_type": "account_credentials", "account_id": account.account_id}
        return await self._client.fetch_token(tokens, form, auth=(account.client_id, account.client_secret))

    async def make(self, draft: EventDraft) -> MeetingLink:
        minutes = max(1, round((draft.end - draft.start).total_seconds() / 60))
        body = {
            "topic": draft.title,
            "type": SCHEDULED,
            "start_time": draft.start.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "duration": minutes,
            "agenda": draft.description[:2_000],
        }
        made = await self._client.send("POST", f"{self._api}/users/me/meetings", json=body, writes=True)
        return MeetingLink(self._client.text(made, "join_url"), LinkProvider.ZOOM)

    async def drop(self, link: MeetingLink) -> None:
        # A link is https://HOST/j/ID?pwd=…, with the number of the meeting.
        meeting = urlsplit(link.url).path.rpartition("/")[2]
        with contextlib.suppress(ToolError):
            await self._client.send("DELETE", f"{self._api}/meetings/{quote(meeting, safe='')}")

    async def aclose(self) -> None:
        await self._client.aclose()
