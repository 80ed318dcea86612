"""Reads the streamed answer of a model's server, within limits. Every provider over HTTP reads through this module."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Final, TypeVar, cast

import anyio
import httpx2

from antiphon.models.providers.failures import ConnectionLost, TimedOut

SLICE_S: Final = 0.003
"""How long a server that sends faster than it is read may occupy the event loop."""
DRAIN_S: Final = 0.1
"""How long the end of the stream is awaited after its last item, so that the connection can be used again."""
MAX_REFUSAL_BYTES: Final = 64 * 1024
"""How much of the body of a refusal is read. A sentence of it is shown."""

BROKEN: Final = (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream)
Item = TypeVar("Item")


async def read_stream(
    response: httpx2.Response, decode: Callable[[bytes], Iterator[Item]], is_last: Callable[[Item], bool]
) -> AsyncGenerator[Item, None]:
    """Yields the items of a stream, up to the last one. Other tasks can run however fast they come.

    Raises `ConnectionLost`, `TimedOut`, `ValueError` for a compressed stream, and whatever `decode` raises.
    """
    if is_compressed(response):
        raise ValueError("the stream is compressed, although that was not requested")
    clock = asyncio.get_running_loop().time
    resumed_s = clock()
    try:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                for item in decode(piece):
                    if is_last(item):
                        await _drain(pieces)
                        yield item
                        return
                    yield item
                    if clock() - resumed_s > SLICE_S:
                        await asyncio.sleep(0)
                        resumed_s = clock()
    except httpx2.TimeoutException as error:
        raise TimedOut from error
    except BROKEN as error:
        raise ConnectionLost(has_connected=True) from error


async def retry_once(attempt: Callable[[], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """Retries once if the connection is lost before the first item: a pooled connection may have died unnoticed."""
    may_retry = True
    while True:
        try:
            async with aclosing(attempt()) as items:
                async for item in items:
                    may_retry = False
                    yield item
                return
        except ConnectionLost:
            if not may_retry:
                raise
            may_retry = False


def join_words(
    items: Iterator[Item], words_of: Callable[[Item], str | None], say: Callable[[str], Item]
) -> Iterator[Item]:
    """Joins items that are only words and that arrived together, because each piece of text costs a message to the
    client, and a server that sends faster than it is read would delay all other sessions."""
    words = list[str]()
    try:
        for item in items:
            if text := words_of(item):
                words.append(text)
                continue
            if words:
                yield say("".join(words))
                words = []
            yield item
    except Exception:
        # The words before the error are passed on.
        if words:
            yield say("".join(words))
        raise
    if words:
        yield say("".join(words))


async def limit_refusal(response: httpx2.Response) -> None:
    """Limits the body of a refusal. It is a response hook of an HTTP client, which would read all of it."""
    if not response.is_success:
        most = 0 if is_compressed(response) else MAX_REFUSAL_BYTES
        response.stream = _Beginning(cast(httpx2.AsyncByteStream, response.stream), most)


def is_compressed(response: httpx2.Response) -> bool:
    """Whether the body is compressed. It could expand to any size, so compression is neither requested nor accepted."""
    return response.headers.get("content-encoding", "identity") != "identity"


async def _drain(pieces: AsyncGenerator[bytes, None]) -> None:
    with suppress(TimeoutError, *BROKEN):
        async with asyncio.timeout(DRAIN_S):
            async for _ in pieces:
                await asyncio.sleep(0)


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of a stream."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._left:
            async for piece in self._stream:
                yield piece[: self._left]
                self._left -= len(piece)
                if self._left <= 0:
                    return

    async def aclose(self) -> None:
        await self._stream.aclose()
