"""Reads the chunks of a chat completion from the HTTP response, within limits.

The SDK's own stream has no limits, and hides whether the end mark came.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, suppress
from typing import Any, Final, cast

import anyio
import httpx2
import msgspec
import openai
from msgspec import Struct

from antiphon.models.bounded import MAX_CALLS, TOO_MANY_CALLS, LimitExceeded
from antiphon.models.providers.accumulator import Fragment
from antiphon.models.providers.events import EventDecoder
from antiphon.models.providers.failures import StreamedError

SLICE_S: Final = 0.003
"""How long a server that sends faster than it is read may occupy the event loop."""
DRAIN_S: Final = 0.1
"""How long the end of the stream is awaited after `[DONE]`, so that the connection can be used again."""
MAX_REFUSAL_BYTES: Final = 64 * 1024
"""How much of the body of a refusal is read. A sentence of it is shown."""

_END_MARK: Final = b"[DONE]"
_BROKEN: Final = (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream)


class Delta(Struct, frozen=True):
    content: str | None = None
    tool_calls: list[Fragment] | None = None


class Choice(Struct, frozen=True):
    delta: Delta | None = None
    finish_reason: Any = None


class Tokens(Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Chunk(Struct, frozen=True):
    choices: list[Choice] | None = None
    """Empty in the chunk that counts the tokens."""
    usage: Tokens | None = None
    error: Any = None


DONE: Final = Chunk()
"""The server's end mark."""
_decoder: Final = msgspec.json.Decoder(Chunk)


async def read_chunks(response: httpx2.Response) -> AsyncGenerator[Chunk, None]:
    """Yields the chunks of a stream, then `DONE` if it has its end mark. Other tasks can run however fast it comes.

    Raises the SDK's errors for a broken connection, and `LimitExceeded`, `StreamedError` or `ValueError`.
    """
    if _is_compressed(response):
        raise ValueError("the stream is compressed, although that was not requested")
    decoder, clock = EventDecoder(), asyncio.get_running_loop().time
    resumed_s = clock()
    try:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                for chunk in _decode_all(decoder.feed(piece)):
                    if chunk is DONE:
                        await _drain(pieces)
                        yield DONE
                        return
                    yield chunk
                    if clock() - resumed_s > SLICE_S:
                        await asyncio.sleep(0)
                        resumed_s = clock()
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(response.request) from error
    except _BROKEN as error:
        raise openai.APIConnectionError(request=response.request) from error


async def _drain(pieces: AsyncGenerator[bytes, None]) -> None:
    with suppress(TimeoutError, *_BROKEN):
        async with asyncio.timeout(DRAIN_S):
            async for _ in pieces:
                await asyncio.sleep(0)


def _decode_all(events: Iterator[bytes]) -> Iterator[Chunk]:
    """Yields the chunks of one read. Words that arrived together become one chunk, because each piece of text costs a
    message to the client, and a server that sends faster than it is read would delay all other sessions."""
    words, is_done = list[str](), False
    try:
        for data in events:
            is_done = data.startswith(_END_MARK)
            if is_done:
                break
            chunk = _decode(data)
            if text := _words_only(chunk):
                words.append(text)
                continue
            if words:
                yield _say(words)
                words = []
            yield chunk
    except Exception:
        # The words before the error are passed on.
        if words:
            yield _say(words)
        raise
    if words:
        yield _say(words)
    if is_done:
        yield DONE


def _words_only(chunk: Chunk) -> str | None:
    match chunk:
        case Chunk(choices=[Choice(delta=Delta(content=text, tool_calls=None | []), finish_reason=None)], usage=None):
            return text
    return None


def _say(words: list[str]) -> Chunk:
    return Chunk([Choice(Delta("".join(words)))])


def _decode(data: bytes) -> Chunk:
    try:
        chunk = _decoder.decode(data)
    except msgspec.DecodeError:
        # msgspec refuses half a surrogate pair. The other half may be in the next chunk.
        chunk = msgspec.convert(json.loads(data), Chunk)
    if chunk.error:
        raise StreamedError(chunk.error)
    if chunk.choices and (delta := chunk.choices[0].delta) and len(delta.tool_calls or ()) > MAX_CALLS:
        raise LimitExceeded(TOO_MANY_CALLS)
    return chunk


async def limit_refusal(response: httpx2.Response) -> None:
    """Limits the body of a refusal. It is a response hook of the HTTP client, since the SDK would read all of it."""
    if not response.is_success:
        most = 0 if _is_compressed(response) else MAX_REFUSAL_BYTES
        response.stream = _Beginning(cast(httpx2.AsyncByteStream, response.stream), most)


def _is_compressed(response: httpx2.Response) -> bool:
    """Whether the body is compressed. It could expand to any size, so compression is neither requested nor accepted."""
    return response.headers.get("content-encoding", "identity") != "identity"


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
