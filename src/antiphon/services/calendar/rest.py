"""A client for JSON services with OAuth: it renews the access token, and turns every failure into a `ToolError`."""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec

from antiphon.clock import Clock
from antiphon.models.providers.failures import read_retry_after
from antiphon.services.calendar import failures
from antiphon.services.http.failures import (
    WebError,
    broken,
    decode,
    explain,
    explain_status,
    too_many,
)
from antiphon.tools.capabilities.fetch import Fetched
from antiphon.tools.errors import ToolError

if TYPE_CHECKING:
    from antiphon.services.http.client import WebClient
    from antiphon.services.http.network import Network

TIMEOUT_S: Final = 10.0
"""The gate's deadline is usually shorter. This one is for writes, which the gate does not cut short."""
MAX_BYTES: Final = 8 * 1024 * 1024
RENEW_BEFORE_S: Final = 60.0
DEFAULT_LIFE_S: Final = 300.0
_RATE_REASONS: Final = frozenset(
    {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded", "calendarUsageLimitsExceeded"}
)


class StatusError(Exception):
    """The service has refused a request in a way that the caller may know what to do about."""

    def __init__(self, status: int, failure: ToolError) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.failure = failure


class AccessToken:
    """An access token, which is renewed before it expires."""

    def __init__(self, renew: Callable[[], Awaitable[Mapping[str, Any]]], clock: Clock) -> None:
        self._renew = renew
        self._clock = clock
        self._token = ""
        self._expires = 0.0

    async def get(self) -> str:
        if not self._token or self._clock.monotonic() >= self._expires - RENEW_BEFORE_S:
            answer = await self._renew()
            life_s = answer.get("expires_in")
            self._token = str(answer["access_token"])
            self._expires = self._clock.monotonic() + (
                float(life_s) if isinstance(life_s, int | float) else DEFAULT_LIFE_S
            )
        return self._token

    def forget(self) -> None:
        self._token = ""


class RestClient:
    def __init__(
        self,
        service: str,
        renewing: str,
        token: AccessToken,
        *,
        servers: Sequence[str],
        network: "Network | None" = None,
    ) -> None:
        """`renewing` is what to do if the service no longer accepts the credentials, and `servers` are the addresses
        of the settings, which may be in a private network."""
        self._service = service
        self._renewing = renewing
        self._token = token
        self._servers = servers
        self._network = network
        self._client: WebClient | None = None

    async def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        writes: bool = False,
        expect: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """Sends a request, and returns the JSON object of the answer, empty if there is none.

        Raises `ToolError`, or `StatusError` for one of the statuses that the caller expects. If the answer to a request
        that `writes` does not arrive, the error says that the outcome is unknown.
        """
        content = None if json is None else msgspec.json.encode(json)
        address = f"{url}?{urlencode(params)}" if params else url
        for attempt in (1, 2):
            headers = {"authorization": f"Bearer {await self._token.get()}", "content-type": "application/json"}
            answer = await self._request(method, address, content, headers=headers, writes=writes)
            if answer.status != 401 or attempt == 2:
                break
            # The token may have been revoked or have expired early, so a new one is tried once.
            self._token.forget()
        if answer.status in expect:
            raise StatusError(answer.status, self._failure(answer))
        if not answer.is_success:
            raise self._failure(answer)
        return self._object(answer) if answer.content.strip() else {}

    async def fetch_token(
        self, url: str, form: Mapping[str, str], auth: tuple[str, str] | None = None
    ) -> Mapping[str, Any]:
        """Asks for an access token. A refusal means that the credentials are wrong."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if auth is not None:
            headers["authorization"] = f"Basic {base64.b64encode(':'.join(auth).encode()).decode()}"
        answer = await self._request("POST", url, urlencode(form).encode(), headers=headers)
        if answer.status in (400, 401, 403):
            raise failures.refused(self._service, self._renewing)
        if not answer.is_success:
            raise self._failure(answer)
        token = self._object(answer)
        if not isinstance(token.get("access_token"), str):
            raise broken(self._service)
        return token

    def text(self, answer: Mapping[str, Any], key: str) -> str:
        """Returns a text of an answer. Raises `ToolError` if it is missing."""
        value = answer.get(key)
        if not isinstance(value, str) or not value:
            raise broken(self._service)
        return value

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _request(
        self,
        method: str,
        url: str,
        content: bytes | None,
        *,
        headers: Mapping[str, str],
        writes: bool = False,
    ) -> Fetched:
        try:
            return await self._opened().request(
                method, url, content, headers=headers, max_bytes=MAX_BYTES, timeout_s=TIMEOUT_S
            )
        except WebError as error:
            if writes and error.was_sent:
                raise failures.unknown_outcome(self._service) from error
            raise explain(error, self._service) from error

    def _opened(self) -> "WebClient":
        # Imported here, so that the server starts without the HTTP client.
        from antiphon.services.http.client import WebClient
        from antiphon.services.http.network import Network, authority

        if self._client is None:
            self._client = WebClient(self._network or Network(), frozenset(map(authority, self._servers)))
        return self._client

    def _object(self, answer: Fetched) -> dict[str, Any]:
        return decode(answer.content, dict[str, Any], self._service)

    def _failure(self, answer: Fetched) -> ToolError:
        match answer.status:
            case 403 if self._reasons(answer) & _RATE_REASONS:
                return too_many(self._service, read_retry_after(answer.headers))
            case 401:
                return failures.refused(self._service, self._renewing)
            case 403:
                return failures.forbidden(self._service)
            case 404 | 410:
                return failures.no_such_event()
            case 409 | 412:
                return failures.changed_meanwhile()
        return explain_status(answer, self._service)

    def _reasons(self, answer: Fetched) -> set[str]:
        try:
            error = self._object(answer).get("error")
        except ToolError:
            return set()
        listed = error.get("errors") if isinstance(error, dict) else None
        found = listed if isinstance(listed, list) else []
        return {str(each.get("reason")) for each in found if isinstance(each, dict)}
