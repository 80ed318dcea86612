"""Security headers: a browser may only run our own scripts, connect only to us, and frame our pages only in our own."""

from collections.abc import Collection
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.security.origin import parse_origin
from antiphon.security.paths import API, local_path

Headers = tuple[tuple[bytes, bytes], ...]

_API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_ALWAYS: Final[Headers] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"microphone=(self), camera=(), geolocation=(), payment=(), usb=()"),
)
_NO_FRAME: Final = (b"x-frame-options", b"DENY")
_OWN_FRAME: Final = (b"x-frame-options", b"SAMEORIGIN")
_SOCKET_SCHEMES: Final = {"http": "ws", "https": "wss"}


def page_policy(origins: Collection[str]) -> str:
    """Makes the Content-Security-Policy of the page, which is served at these origins."""
    # 'self' includes the WebSocket, except in Safari before 15.4, which needs its address.
    sockets = sorted(
        str(origin).replace(origin.scheme, _SOCKET_SCHEMES[origin.scheme], 1)
        for origin in map(parse_origin, origins)
        # A policy cannot contain an IPv6 address.
        if origin is not None and origin.scheme in _SOCKET_SCHEMES and ":" not in origin.host
    )
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            " ".join(["connect-src 'self'", *sockets]),
            # Images and pages that tools show. Framed pages are also sandboxed.
            "img-src 'self' data: https:",
            "frame-src https: http:",
            "media-src 'self' blob:",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
        )
    )


class SecurityHeaders:
    """ASGI middleware. A header that a route sets itself is kept."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._page: Headers = (
            (b"content-security-policy", page_policy(origins).encode("latin-1")),
            _OWN_FRAME,
            *_ALWAYS,
        )
        # What people said must not be cached by a browser.
        self._api: Headers = (
            (b"content-security-policy", _API_POLICY.encode("latin-1")),
            (b"cache-control", b"no-store"),
            _NO_FRAME,
            *_ALWAYS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        extra = self._api if local_path(scope).startswith(API) else self._page

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                given = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
                names = {name.lower() for name, _ in given}
                message = {**message, "headers": given + [each for each in extra if each[0] not in names]}
            await send(message)

        await self._app(scope, receive, send_with_headers)
