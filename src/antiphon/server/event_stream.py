"""Streams an answer as server-sent events: each message as it happens, and the whole answer last."""

import asyncio
from contextlib import suppress
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from antiphon.server.answer import ChatAnswer
from antiphon.server.chat import ChatTurn
from antiphon.server.refusals import Refusal, Refused
from antiphon.telemetry.log import get_logger

HEARTBEAT_S: Final = 15.0
"""Proxies close connections that are silent for half a minute or more."""
HEARTBEAT: Final = b": still here\n\n"
MEDIA_TYPE: Final = "text/event-stream"

log = get_logger(__name__)


class _Kind(msgspec.Struct):
    type: str


class EventStream(Response):
    """Notices at once when the client is gone. Starlette's own streaming response notices only when it sends."""

    media_type = MEDIA_TYPE

    def __init__(self, turn: ChatTurn) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._turn = turn
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._turn.link.listener = lambda frame: self._events.put_nowait(event_of(frame))
        making = asyncio.create_task(self._make())
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(disconnect(receive))
        try:
            await asyncio.wait([writing, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (making, writing, leaving):
                task.cancel()
            for outcome in await asyncio.gather(making, writing, leaving, return_exceptions=True):
                if isinstance(outcome, Exception) and not isinstance(outcome, OSError):
                    log.error("event_stream_failed", exc_info=outcome)

    async def _make(self) -> None:
        body: ChatAnswer | Refused
        try:
            body = await self._turn.run()
        except Refusal as refusal:
            body = refusal.body
        self._events.put_nowait(b"event: done\ndata: %b\n\n" % msgspec.json.encode(body))
        self._events.put_nowait(None)

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while (event := await self._next()) is not None:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self) -> bytes | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_S):
                return await self._events.get()
        return HEARTBEAT


def event_of(frame: str) -> bytes:
    kind = msgspec.json.decode(frame, type=_Kind).type
    return f"event: {kind}\ndata: {frame}\n\n".encode()


async def disconnect(receive: Receive) -> None:
    """Returns when the client is gone. The body of the request must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
