"""An HTTP client that cannot be led into a private network, nor be flooded, stalled or sent in circles."""

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

import httpx2
from httpcore2 import (
    URL,
    AsyncConnectionPool,
    ConnectError,
    ConnectTimeout,
    NetworkError,
    PoolTimeout,
    ProtocolError,
    Request,
    Response,
    TimeoutException,
)

from antiphon import __version__
from antiphon.security.destinations import SCHEMES, ForbiddenAddress, check_target
from antiphon.services.http.failures import Trouble, WebError
from antiphon.services.http.network import Authority, CheckedBackend, Network
from antiphon.tools.capabilities.fetch import MAX_BYTES, TIMEOUT_S, Fetched

MAX_REDIRECTS: Final = 5
MAX_URL_CHARS: Final = 4_096
CONNECTIONS: Final = 20
CONNECTIONS_PER_HOST: Final = 4
CONNECT_S: Final = 5.0
"""The most of the time for a request that connecting may take."""
KEEP_ALIVE_S: Final = 30.0
USER_AGENT: Final = f"Antiphon/{__version__} (self-hosted assistant)"

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OURS: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade"}
)
"""Headers that the client sets itself."""


@dataclass(frozen=True, slots=True)
class _Target:
    url: httpx2.URL
    port: int

    @property
    def authority(self) -> Authority:
        return self.url.raw_host.decode(), self.port

    @property
    def origin(self) -> tuple[str, Authority]:
        return self.url.scheme, self.authority


@dataclass(slots=True, eq=False)
class WebClient:
    """Keeps no cookies, knows no environment proxies, and pools connections."""

    network: Network
    trusted: frozenset[Authority] = frozenset()
    """What the operator has configured: these hosts may be in a private network. Redirects elsewhere may not."""
    _pool: AsyncConnectionPool | None = None
    _hosts: WeakValueDictionary[Authority, asyncio.Semaphore] = field(default_factory=WeakValueDictionary)

    async def request(
        self,
        method: str,
        url: str,
        content: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_BYTES,
        timeout_s: float = TIMEOUT_S,
    ) -> Fetched:
        """Returns any answer but a redirect, which is followed for GET, and an error otherwise. Raises `WebError`."""
        sent = _Sent()
        try:
            async with asyncio.timeout(timeout_s):
                target = self._check(url)
                for _ in range(MAX_REDIRECTS + 1):
                    answer = await self._exchange(
                        method,
                        target,
                        content,
                        headers=headers or {},
                        max_bytes=max_bytes,
                        connect_s=min(timeout_s / 2, CONNECT_S),
                        sent=sent,
                    )
                    location = answer.headers.get("location")
                    if answer.status not in _REDIRECTS or location is None:
                        return answer
                    if method != "GET":
                        raise WebError(Trouble.REDIRECTED, f"it redirects to {location[:200]}")
                    following = self._follow(target, location)
                    if following.origin != target.origin:
                        headers = {}  # They may have a key for the first host.
                    target = following
        except ForbiddenAddress as error:
            raise WebError(Trouble.FORBIDDEN, str(error)) from error
        except (ConnectError, ConnectTimeout, PoolTimeout) as error:
            raise WebError(Trouble.UNREACHABLE, str(error)) from error
        except (TimeoutError, TimeoutException) as error:
            raise WebError(Trouble.SLOW, f"no answer within {timeout_s:g} s", was_sent=sent.yes) from error
        except (NetworkError, ProtocolError, zlib.error, UnicodeError) as error:
            raise WebError(Trouble.BROKEN, str(error), was_sent=sent.yes) from error
        raise WebError(Trouble.BROKEN, f"more than {MAX_REDIRECTS} redirects")

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()

    def _check(self, text: str) -> _Target:
        try:
            url = httpx2.URL(text)
        except (httpx2.InvalidURL, ValueError, TypeError):
            raise ForbiddenAddress("That is not a web address.") from None
        if len(text) > MAX_URL_CHARS:
            raise ForbiddenAddress("The address is too long.")
        authority = (url.raw_host.decode(), url.port or SCHEMES.get(url.scheme, 0))
        if authority in self.trusted and url.scheme in SCHEMES and not url.userinfo:
            return _Target(url, authority[1])
        return _Target(url, check_target(url.scheme, url.raw_host.decode(), url.port, has_user=bool(url.userinfo)))

    def _follow(self, target: _Target, location: str) -> _Target:
        try:
            following = self._check(str(target.url.join(location)))
        except (httpx2.InvalidURL, ValueError):
            raise ForbiddenAddress("It redirects to something that is not a web address.") from None
        if target.url.scheme == "https" and following.url.scheme == "http":
            raise ForbiddenAddress("It redirects from a secure address to an insecure one.")
        return following

    async def _exchange(
        self,
        method: str,
        target: _Target,
        content: bytes | None,
        *,
        headers: Mapping[str, str],
        max_bytes: int,
        connect_s: float,
        sent: "_Sent",
    ) -> Fetched:
        own = {"host": target.url.netloc.decode(), "user-agent": USER_AGENT, "accept-encoding": "gzip"}
        if content is not None:
            own["content-length"] = str(len(content))
        theirs = {name.lower(): value for name, value in headers.items() if name.lower() not in _OURS}
        url = target.url
        request = Request(
            method,
            URL(scheme=url.raw_scheme, host=url.raw_host, port=target.port, target=url.raw_path),
            headers=[(name.encode(), value.encode()) for name, value in {**own, **theirs}.items()],
            content=content,
            extensions={"trace": sent, "timeout": {"connect": connect_s}},
        )
        limit = self._hosts.setdefault(target.authority, asyncio.Semaphore(CONNECTIONS_PER_HOST))
        async with limit:
            response = await (await self._opened()).handle_async_request(request)
            try:
                answer_headers = {name.decode().lower(): value.decode("latin-1") for name, value in response.headers}
                body = b"" if response.status in _REDIRECTS else await _read(response, answer_headers, max_bytes)
            finally:
                await response.aclose()
        return Fetched(str(url), response.status, answer_headers, body)

    async def _opened(self) -> AsyncConnectionPool:
        if self._pool is None:
            tls = await self.network.tls()
            backend = CheckedBackend(self.network.resolve, self.network.dial, self.trusted)
            self._pool = self._pool or AsyncConnectionPool(
                ssl_context=tls,
                max_connections=CONNECTIONS,
                keepalive_expiry=KEEP_ALIVE_S,
                network_backend=backend,
            )
        return self._pool


class _Sent:
    """Learns from the trace of a request whether any of it was sent."""

    yes = False

    async def __call__(self, event: str, info: object) -> None:
        if event.endswith("send_request_headers.started"):
            self.yes = True


async def _read(response: Response, headers: Mapping[str, str], max_bytes: int) -> bytes:
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip"):
        raise WebError(
            Trouble.BROKEN, f"its answer is compressed with {encoding[:20]}, which was not asked for", was_sent=True
        )
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if "gzip" in encoding else None
    body = bytearray()
    async for piece in response.aiter_stream():
        # Without a limit, one packet could unfold to a thousand times its size.
        body += piece if unzip is None else unzip.decompress(piece, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            raise WebError(Trouble.TOO_LARGE, f"its answer has more than {max_bytes:,} bytes", was_sent=True)
    if unzip is not None and body and not unzip.eof:
        raise WebError(Trouble.BROKEN, "its answer ends too early", was_sent=True)
    return bytes(body)
