"""Requests of a command to the HTTP interface of a running server."""

import ssl
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import BaseHandler, HTTPSHandler, ProxyHandler, Request, build_opener

import msgspec

from antiphon.cli.target import ADVICE, find_target
from antiphon.errors import AntiphonError
from antiphon.security.origin import is_loopback

if TYPE_CHECKING:
    from antiphon.config import Settings

TIMEOUT_S: Final = 10.0
MAX_BYTES: Final = 4_000_000
"""How much of a response is read."""

Answer = TypeVar("Answer")


class ApiError(AntiphonError):
    """The server cannot be reached, or refuses the request; the text says why, and what to do."""

    code = "api"


@dataclass(frozen=True, slots=True)
class ServerApi:
    url: str
    """The address of the server, without a path."""
    token: str | None = None
    tls: ssl.SSLContext | None = None
    """What is trusted; None means the certificates that the system trusts."""

    @classmethod
    def find(cls, settings: "Settings", url: str | None, token: str | None, cacert: Path | None = None) -> "ServerApi":
        """Finds the server at an address, which may be that of its WebSocket; by default the one of the settings."""
        try:
            target = find_target(settings, url, token, cacert)
            parts = urlsplit(target.http_url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError
        except ValueError:
            raise ApiError(f"{url!r} is not the address of a server. Write --url http://HOST:PORT.") from None
        return cls(target.http_url, token, target.tls)

    def request(self, method: str, path: str, answer: type[Answer], body: Any = None) -> Answer:
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else msgspec.json.encode(body)
        try:
            request = Request(f"{self.url}{path}", data, headers, method=method)
            # A proxy could not reach this machine.
            is_here = is_loopback(urlsplit(self.url).hostname or "")
            handlers: list[BaseHandler] = [HTTPSHandler(context=self.tls), *([ProxyHandler({})] if is_here else [])]
            opener = build_opener(*handlers)
            with opener.open(request, timeout=TIMEOUT_S) as response:
                return msgspec.json.decode(response.read(MAX_BYTES), type=answer)
        except HTTPError as error:
            with error:
                raise ApiError(self._explain(error)) from None
        except (HTTPException, OSError, ValueError) as error:
            if isinstance(error, msgspec.DecodeError):
                raise ApiError(f"what answers at {self.url} is not this version of Antiphon.") from None
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, ssl.SSLCertVerificationError):
                why = f"the certificate of {self.url} is not trusted: {reason.verify_message.rstrip('.')}."
                raise ApiError(f"{why} {ADVICE}") from None
            what_to_do = "Start one with `antiphon serve`, or give its address with --url."
            raise ApiError(f"no server can be reached at {self.url} ({_say(reason)}). {what_to_do}") from None

    def _explain(self, error: HTTPError) -> str:
        """Returns the reason that the server gave."""
        try:
            told = msgspec.json.decode(error.read(MAX_BYTES))["error"]["message"]
        except (msgspec.DecodeError, OSError, HTTPException, KeyError, TypeError):
            return f"what answers at {self.url} is not Antiphon: it refuses with HTTP {error.code}."
        hint = " Give one with --token." if error.code == 401 else ""
        return f"{told}{hint}"


def _say(reason: object) -> str:
    """Returns the reason without its number."""
    return str(getattr(reason, "strerror", None) or reason).rstrip(".").lower()
