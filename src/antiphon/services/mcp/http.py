"""An MCP server at an address: requests go over HTTP, with bounded answers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from antiphon.services.mcp.stdio import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

CONNECT_S: Final = 10.0
READ_S: Final = 600.0
"""How long a stream may be silent. Calls have shorter deadlines of their own."""


@dataclass(slots=True)
class Exchange:
    """The HTTP answer to one request of ours, of which the SDK only tells that it was an error."""

    status: int | None = None
    retry_after_s: float | None = None


current_exchange: Final[ContextVar[Exchange | None]] = ContextVar("current_exchange", default=None)
"""Set by the caller of a request. The SDK sends each request in the context of its caller."""


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str]) -> "AsyncIterator[TransportStreams]":
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(
            headers=dict(headers),
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
            transport=_bounded_transport(),
            event_hooks={"response": [_note]},
            follow_redirects=False,
            # A proxy of the environment could read what is meant for this server alone.
            trust_env=False,
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


async def _note(response: "httpx2.Response") -> None:
    exchange = current_exchange.get()
    if exchange is not None:
        exchange.status = response.status_code
        waiting = response.headers.get("retry-after", "")
        exchange.retry_after_s = float(waiting) if waiting.isdecimal() and len(waiting) < 6 else None


def _bounded_transport() -> "httpx2.AsyncBaseTransport":
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):
        """The body of an answer, which may not be longer than a message. Streams of events are bounded by the SDK."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = MAX_MESSAGE_BYTES
            async for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    raise httpx2.StreamError(f"the answer is longer than {MAX_MESSAGE_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class BoundedTransport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            # A compressed answer could be a thousand times longer than what is counted here.
            request.headers["accept-encoding"] = "identity"
            response = await super().handle_async_request(request)
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()
                raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for")
            if "text/event-stream" not in response.headers.get("content-type", ""):
                response.stream = BoundedStream(response.stream)
            return response

    return BoundedTransport(trust_env=False)
