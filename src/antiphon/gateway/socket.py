"""A WebSocket of another protocol: who connects, the frames that wait to be sent, and how both sides end."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from antiphon.gateway.deps import GatewayDeps, address_of
from antiphon.protocol.closing import TOO_SLOW, Close
from antiphon.protocol.limits import FRAME_LIMIT_EXTENSION
from antiphon.security.admission import AdmissionRefused, Caller, RefusalKind
from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable
from antiphon.telemetry.log import get_logger

MAX_FRAME_BYTES: Final = 2 << 20
"""The longest frame from a client. It holds 30 seconds of 24 kHz audio in base64, which is as much as the audio quota
admits at once."""
MAX_WAITING_BYTES: Final = 8 << 20
"""A client that leaves more than this unread is closed. Two minutes of speech in base64 fit in."""
LEAVING_S: Final = 5.0
"""How long pending work may take when a socket is closed."""

RETRY_AFTER_S: Final = 5
"""How long a client is asked to wait while the database cannot be reached."""

STATUSES: Final = {
    RefusalKind.UNAUTHENTICATED: 401,
    RefusalKind.BLOCKED: 403,
    RefusalKind.WRONG_TOKENS: 429,
    RefusalKind.FULL: 429,
}
"""The HTTP status of each refusal."""

log = get_logger(__name__)

ErrorBody = Callable[[AdmissionRefused], Mapping[str, Any]]
"""Words a refusal as the vendor does."""


def refusal_response(refused: AdmissionRefused, body: ErrorBody) -> Response:
    """Makes the HTTP response to a caller that is not admitted."""
    headers = {} if refused.retry_after_s is None else {"Retry-After": str(math.ceil(refused.retry_after_s))}
    return Response(msgspec.json.encode(body(refused)), STATUSES[refused.kind], headers, "application/json")


def _unavailable() -> Response:
    # Both vendors have `error.message`.
    told = {"error": {"message": STORE_UNAVAILABLE, "type": "server_error", "code": "unavailable"}}
    return Response(msgspec.json.encode(told), 503, {"Retry-After": str(RETRY_AFTER_S)}, "application/json")


async def admit(socket: WebSocket, deps: GatewayDeps, key: str | None, body: ErrorBody) -> Caller | None:
    """Admits the client of a socket that is not accepted yet. Otherwise answers the upgrade with an HTTP error."""
    try:
        caller = await deps.admission.admit(key, address=address_of(socket), route=socket.url.path)
    except AdmissionRefused as refused:
        await socket.send_denial_response(refusal_response(refused, body))
        return None
    except StoreUnavailable as error:
        log.error("socket_refused", error=str(error))
        await socket.send_denial_response(_unavailable())
        return None
    extensions: dict[str, Any] = socket.scope.get("extensions") or {}
    if FRAME_LIMIT_EXTENSION in extensions:
        extensions[FRAME_LIMIT_EXTENSION]["set"](MAX_FRAME_BYTES)
    return caller


class SocketSender:
    """The sending side of a socket: a queue with one writer. No method but `write` waits."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._frames: deque[str] = deque()
        self._waiting_bytes = 0
        self._wakeup = asyncio.Event()
        self.closing: Close | None = None

    def send(self, frame: str) -> None:
        if self.closing is not None:
            return
        self._frames.append(frame)
        self._waiting_bytes += len(frame)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._frames.clear()
            self.close(TOO_SLOW)
        self._wakeup.set()

    def close(self, close: Close) -> None:
        """Closes the socket after everything that waits has been sent."""
        if self.closing is None:
            self.closing = close
            self._wakeup.set()

    async def write(self) -> None:
        """Sends until the socket should be closed, and then closes it."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                await self._socket.send_text(frame)
                self._waiting_bytes -= len(frame)
            if self.closing is not None:
                await self._socket.close(self.closing.code, self.closing.reason)
                return
            self._wakeup.clear()
            await self._wakeup.wait()


async def converse(
    socket: WebSocket, sender: SocketSender, take: Callable[[str | bytes], Awaitable[None]]
) -> WebSocketDisconnect | None:
    """Reads frames into `take` and sends what waits, until either side closes. Returns how the client has left, or None
    if it did not."""

    async def read() -> None:
        while sender.closing is None:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005), message.get("reason"))
            text, data = message.get("text"), message.get("bytes")
            await take(text if text is not None else data or b"")

    reader, writer = asyncio.create_task(read()), asyncio.create_task(sender.write())
    gone: WebSocketDisconnect | None = None
    try:
        await asyncio.wait([reader, writer], return_when=asyncio.FIRST_COMPLETED)
        if sender.closing is not None:
            await asyncio.wait([writer], timeout=LEAVING_S)
    finally:
        for task in (reader, writer):
            task.cancel()
        for outcome in await asyncio.gather(reader, writer, return_exceptions=True):
            if isinstance(outcome, WebSocketDisconnect):
                gone = outcome
            elif isinstance(outcome, Exception) and not isinstance(outcome, RuntimeError):
                log.error("socket_failed", exc_info=outcome)
    return gone
