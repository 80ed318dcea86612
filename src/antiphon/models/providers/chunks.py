"""Decodes the chunks of a streamed chat completion.

The SDK's own stream has no limits, and hides whether the end mark came.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final

import httpx2
import msgspec
from msgspec import Struct

from antiphon.models.bounded import MAX_CALLS, TOO_MANY_CALLS, LimitExceeded
from antiphon.models.providers.accumulator import Fragment
from antiphon.models.providers.events import EventDecoder
from antiphon.models.providers.failures import StreamedError
from antiphon.models.providers.streams import join_words, read_stream

_END_MARK: Final = b"[DONE]"


class Delta(Struct, frozen=True):
    content: str | None = None
    tool_calls: list[Fragment] | None = None


class Choice(Struct, frozen=True):
    delta: Delta | None = None
    finish_reason: Any = None
    error: Any = None
    """Where OpenRouter reports that a provider failed."""


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


def read_chunks(response: httpx2.Response) -> AsyncGenerator[Chunk, None]:
    """Yields the chunks of a stream, then `DONE` if it has its end mark.

    Raises `LimitExceeded`, `StreamedError`, and what `read_stream` raises.
    """
    decoder = EventDecoder()

    def decode(piece: bytes) -> Iterator[Chunk]:
        return join_words(_decode_all(decoder.feed(piece)), _words_only, _say)

    return read_stream(response, decode, lambda chunk: chunk is DONE)


def _decode_all(events: Iterator[bytes]) -> Iterator[Chunk]:
    for data in events:
        if data.startswith(_END_MARK):
            yield DONE
            return
        yield _decode(data)


def _words_only(chunk: Chunk) -> str | None:
    match chunk:
        case Chunk(choices=[Choice(delta=Delta(content=text, tool_calls=None | []), finish_reason=None)], usage=None):
            return text
    return None


def _say(words: str) -> Chunk:
    return Chunk([Choice(Delta(words))])


def _decode(data: bytes) -> Chunk:
    try:
        chunk = _decoder.decode(data)
    except msgspec.DecodeError:
        # msgspec refuses half a surrogate pair. The other half may be in the next chunk.
        chunk = _convert(json.loads(data))
    if chunk.error:
        raise StreamedError(chunk.error)
    if chunk.choices and (error := chunk.choices[0].error):
        raise StreamedError(error)
    if chunk.choices and (delta := chunk.choices[0].delta) and len(delta.tool_calls or ()) > MAX_CALLS:
        raise LimitExceeded(TOO_MANY_CALLS)
    return chunk


def _convert(decoded: Any) -> Chunk:
    match decoded:
        case [{"error": error}, *_]:
            # Gemini sends errors in an array.
            raise StreamedError(error)
    return msgspec.convert(decoded, Chunk)
