"""A chat-completions server that misbehaves, as a process of its own: `python -m tests.fakes.hostile_model`.

It prints its port. How it misbehaves is what the user said last: the name of a `Mode`.
"""

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from itertools import count
from typing import Any, Final

from antiphon.compose.warming import WARM_UP
from tests.fakes.chat_server import call_delta, delta, event
from tests.fakes.tree import ROOT

DRIP_S: Final = 0.1
PIECE: Final = 64 * 1024
SENTENCE: Final = "I am sorry, I cannot say that. "


class Mode(StrEnum):
    ENDLESS_LINE = "endless line"
    ENDLESS_ANSWER = "endless answer"
    ENDLESS_ARGUMENTS = "endless arguments"
    ENDLESS_ERROR = "endless error"
    COMPRESSED_BOMB = "compressed bomb"
    THOUSAND_CALLS = "thousand calls"
    DRIP = "drip"
    CUT_STREAM = "cut stream"
    CUT_CALL = "cut call"
    SPLIT_EMOJI = "split emoji"
    LONE_HALVES = "lone halves"
    REDIRECT = "redirect"
    SILENCE = "silence"
    SILENCE_AFTER_TOOLS = "silence after tools"
    SAME_CALL = "same call"
    SAME_SENTENCE = "same sentence"
    GARBAGE = "garbage"
    ERROR_500 = "error 500"
    ERROR_429 = "error 429"
    HANG_UP = "hang up"
    GOOD = "good"
    PROMPT = "prompt"
    """Not hostile either: it repeats its prompt."""


def call(name: str, arguments: str, index: int = 0, id: str | None = None) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id or f"call_0123456789_{index}", "type": "function", "function": function}


def raw(content: str) -> bytes:
    """A chunk whose content is JSON as it stands, escapes of lone surrogates included."""
    return event(f'{{"choices":[{{"index":0,"delta":{{"content":"{content}"}}}}]}}')


END: Final = event(delta("stop")) + event("[DONE]")


async def forever(piece: bytes) -> AsyncIterator[bytes]:
    while True:
        yield piece


async def endless_line() -> AsyncIterator[bytes]:
    yield b'data: {"choices":[{"index":0,"delta":{"content":"'
    async for piece in forever(b"x" * PIECE):
        yield piece


async def endless_answer() -> AsyncIterator[bytes]:
    for first in count(step=300):
        yield b"".join(event(delta(content=f"word{number} ")) for number in range(first, first + 300))


async def endless_arguments() -> AsyncIterator[bytes]:
    yield event(call_delta(call("show_code", '{"code":"')))
    piece = event(call_delta({"index": 0, "function": {"arguments": "x" * 100}}))
    async for pieces in forever(piece * 100):
        yield pieces


async def same_sentence() -> AsyncIterator[bytes]:
    async for piece in forever(event(delta(content=SENTENCE)) * 20):
        yield piece


async def drip() -> AsyncIterator[bytes]:
    yield event(delta(content="One moment. "))
    async for piece in forever(b":\n"):
        await asyncio.sleep(DRIP_S)
        yield piece


@cache
def bomb() -> bytes:
    """A fifth of a megabyte that decompresses to 200."""
    return gzip.compress(b"x" * (200 << 20), 1)


async def once(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        # So that each is read separately.
        await asyncio.sleep(0.01)


def after_tools(messages: list[dict[str, Any]], first: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Sends `first`, and then nothing more once the results have arrived."""
    return once(END) if messages[-1]["role"] == "tool" else first


def thousand_calls() -> bytes:
    calls = [call("get_current_time", f'{{"timezone":"Europe/Oslo{number}"}}', number) for number in range(1_000)]
    return event(call_delta(*calls)) + event(delta("tool_calls")) + event("[DONE]")


LONE: Final = (
    raw(r"Well \ud83d"),
    raw(r"then \ude00."),
    event(
        r'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_\ud83d_0123456789","function":'
        r'{"name":"show_\ud83d","arguments":"{\"code\":\"\ud83d \\ud83d\"}"}}]}}]}'
    ),
    END,
)


def behave(mode: Mode, messages: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    now = event(call_delta(call("get_current_time", "{}"))) + END
    behaviours: dict[Mode, Callable[[], AsyncIterator[bytes]]] = {
        Mode.ENDLESS_LINE: endless_line,
        Mode.ENDLESS_ANSWER: endless_answer,
        Mode.ENDLESS_ARGUMENTS: endless_arguments,
        Mode.ENDLESS_ERROR: lambda: forever(b"x" * PIECE),
        Mode.COMPRESSED_BOMB: lambda: once(bomb()),
        Mode.THOUSAND_CALLS: lambda: once(thousand_calls()),
        Mode.DRIP: drip,
        Mode.CUT_STREAM: lambda: once(event(delta(content="Your balance is 1"))),
        Mode.CUT_CALL: lambda: once(event(call_delta(call("get_current_time", "")))),
        Mode.SPLIT_EMOJI: lambda: once(raw(r"Fine \ud83d"), raw(r"\ude00 indeed."), END),
        Mode.LONE_HALVES: lambda: after_tools(messages, once(*LONE)),
        Mode.SILENCE: lambda: once(END),
        Mode.SILENCE_AFTER_TOOLS: lambda: after_tools(messages, once(now)),
        Mode.SAME_CALL: lambda: once(now),
        Mode.SAME_SENTENCE: same_sentence,
        Mode.GARBAGE: lambda: once(b"data: {nonsense\n\n"),
        Mode.GOOD: lambda: once(event(delta(content="All is well.")), END),
    }
    if mode is Mode.PROMPT:
        return once(event(delta(content=messages[0]["content"])), END)
    return behaviours.get(mode, lambda: once(b'{"error":{"message":"no"}}'))()


HEADS: Final = {
    Mode.REDIRECT: (307, "location: /elsewhere/chat/completions\r\n"),
    Mode.ERROR_500: (500, ""),
    Mode.ERROR_429: (429, "retry-after: 7\r\n"),
    Mode.ENDLESS_ERROR: (500, ""),
    Mode.COMPRESSED_BOMB: (200, "content-encoding: gzip\r\n"),
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request a connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length:")[2].split()[0])
        messages = json.loads(await reader.readexactly(size))["messages"]
        asked = next(message["content"] for message in reversed(messages) if message["role"] == "user")
        # A client that follows the redirect is answered well.
        mode = Mode.GOOD if "/elsewhere/" in head or asked == WARM_UP else Mode(asked)
        if mode is not Mode.HANG_UP:
            status, more = HEADS.get(mode, (200, ""))
            writer.write(f"HTTP/1.1 {status} Said\r\ncontent-type: text/event-stream\r\n{more}".encode())
            writer.write(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n")
            async for piece in behave(mode, messages):
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def hostile_model() -> Iterator[str]:
    """The setting `model.text` of such a server, which runs as long as the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.hostile_model"], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert process.stdout is not None
    try:
        yield f"openai:http://127.0.0.1:{int(process.stdout.readline())}/v1#x"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(main())
