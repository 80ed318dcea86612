"""The outermost middleware: it checks the Host and Origin headers and the size of the body, and adds security headers.

It does not check tokens. A request without an Origin comes from a program, which shows its token in the Authorization
header or in `hello`; the routes and the socket check that.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.security.headers import SecurityHeaders
from antiphon.security.origin import allows_host, allows_origin, is_same_origin, parse_origin
from antiphon.security.paths import local_path, unversioned
from antiphon.server.refusals import STATUSES, Refusal, RefusalCode, RefusalCounts, RefusalLog, RefusalReason

MAX_BODY_BYTES: Final = 1024 * 1024

_WRONG_HOST: Final = Refusal(
    RefusalCode.WRONG_HOST,
    "This server does not answer to the name in the Host header. Add the page's address to server.origins.",
)
_WRONG_ORIGIN: Final = Refusal(
    RefusalCode.WRONG_ORIGIN, "Pages of this origin may not use this server. Add the origin to server.origins."
)


class Guard:
    """ASGI middleware. `origins` are the pages that may use the server. Their hosts are the names it answers to, and so
    are `hosts`. With `same_origin`, pages that come from the host and port of their request may use it, too: inside
    another server, its own address is not known.

    What it refuses never reaches the application: 421 for a wrong Host, 403 for a wrong Origin, also in a WebSocket
    handshake, and 413 for a body of more than `MAX_BODY_BYTES`, or what `body_limits` has for its path.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        origins: Collection[str],
        hosts: Collection[str] = (),
        same_origin: bool = False,
        body_limits: Mapping[str, int] | None = None,
        counts: RefusalCounts | None = None,
    ) -> None:
        """What is refused is added to `counts`."""
        self._counts: RefusalCounts = Counter() if counts is None else counts
        self._app = app
        self._body_limits = body_limits or {}
        self._origins = frozenset(origins)
        self._same_origin = same_origin
        self._hosts = frozenset(origin.host for origin in map(parse_origin, origins) if origin is not None).union(hosts)
        self._refusals = RefusalLog()
        self._covered = SecurityHeaders(self._admit, origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._covered(scope, receive, send)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif not allows_host(_header(scope, b"host"), self._hosts):
            await self._refuse(_WRONG_HOST, scope, receive, send)
        elif not self._allows_origin(_header(scope, b"origin"), _header(scope, b"host")):
            await self._refuse(_WRONG_ORIGIN, scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._admit_body(scope, receive, send)

    def _allows_origin(self, origin: str | None, host: str | None) -> bool:
        return allows_origin(origin, self._origins) or (self._same_origin and is_same_origin(origin, host))

    async def _admit_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        max_bytes = self._body_limits.get(unversioned(local_path(scope)), MAX_BODY_BYTES)
        if _declared_bytes(scope) > max_bytes:
            await self._refuse(_too_large(max_bytes), scope, receive, send)
        else:
            await _Metered(self._app, max_bytes, self._counts)(scope, receive, send)

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the reason, a WebSocket handshake too; a server without that extension sends a bare 403."""
        client = scope.get("client")
        self._counts[RefusalReason(refusal.reason)] += 1
        self._refusals.write(
            str(refusal),
            address=client[0] if client else None,
            route=scope["path"],
            status=STATUSES[refusal.reason],
            host=_header(scope, b"host"),
            origin=_header(scope, b"origin"),
        )
        if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close"})
            return
        await refusal.response()(scope, receive, send)


class _Metered:
    """Counts the bytes of one request as they come in, and answers with 413 once there are too many."""

    def __init__(self, app: ASGIApp, max_bytes: int, counts: RefusalCounts) -> None:
        self._app = app
        self._counts = counts
        self._max_bytes = self._bytes_left = max_bytes
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_counted() -> Message:
            if self._bytes_left < 0:
                return {"type": "http.disconnect"}
            message = await receive()
            self._bytes_left -= len(message.get("body", b""))
            if self._bytes_left >= 0:
                return message
            self._counts[RefusalReason.TOO_LARGE] += 1
            if not self._started:
                await _too_large(self._max_bytes).response()(scope, receive, send)
            return {"type": "http.disconnect"}

        async def send_unless_refused(message: Message) -> None:
            if self._bytes_left >= 0 or self._started:
                self._started = True
                await send(message)

        try:
            await self._app(scope, receive_counted, send_unless_refused)
        except Exception:
            # The application saw its client disconnect, and may raise an error. The client has its response.
            if self._bytes_left >= 0:
                raise


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(RefusalCode.TOO_LARGE, f"A request may have a body of at most {max_bytes} bytes.")


def _header(scope: Scope, name: bytes) -> str | None:
    """Joins repeated headers, as HTTP does. The result is neither a host nor an origin, so it is refused."""
    values = [value for key, value in scope["headers"] if key == name]
    return b", ".join(values).decode("latin-1") if values else None


def _declared_bytes(scope: Scope) -> int:
    declared = _header(scope, b"content-length")
    return int(declared) if declared is not None and declared.isascii() and declared.isdecimal() else 0
