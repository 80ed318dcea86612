"""A chat-completions server on loopback that answers as it is told, down to the bytes, and keeps what it was asked.

Written on bare sockets, since it has to do what no good server does: stop in mid-stream, hang up, cut a character.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, Self

from antiphon.models.providers.openai_compatible import OpenAICompatibleModel
from antiphon.models.providers.references import ModelReference, Provider


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: Any
    """None if there is none."""
    method: str = "POST"

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages


class End(Enum):
    """How a stream ends."""

    CLEAN = "clean"
    CUT = "cut"
    STALL = "stall"
    """The server sends nothing more, and keeps the connection open until the client leaves."""


@dataclass(frozen=True)
class Answer:
    """`pieces` are written one by one; `status` and `headers` go before them."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = End.CLEAN
    pause_s: float = 0.0
    """How long the server waits after each piece."""


HANG_UP = Answer(status=0)
"""Closes the connection instead of answering."""


def event(chunk: Any) -> bytes:
    return f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode()


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call_delta(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return delta(tool_calls=list(calls), **fields)


def tokens(prompt: int, completion: int) -> dict[str, Any]:
    counted = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**delta(), "choices": [], "usage": counted}


def stream(*chunks: Any, finish: str | None = "stop", done: bool = True, end: End = End.CLEAN) -> Answer:
    """A stream with its end marks: `finish` is added if no chunk has a `finish_reason`. Without `done`, it has none."""
    last: list[Any] = ["[DONE]"] if done else []
    if done and finish and not any(_has_finish(chunk) for chunk in chunks):
        last.insert(0, delta(finish))
    return Answer(tuple(event(chunk) for chunk in (*chunks, *last)), end=end)


def _has_finish(chunk: Any) -> bool:
    match chunk:
        case {"choices": [{"finish_reason": str()}, *_]}:
            return True
    return False


def words(text: str) -> Answer:
    return stream(*(delta(content=f"{word} ") for word in text.split()), delta("stop"))


def refusal(status: int, body: Any = None, **headers: str) -> Answer:
    encoded = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer((encoded,), status, {"content-type": "application/json", **named})


class ChatServer:
    """`answers` are given one after the other, or made by a function of the request."""

    def __init__(
        self, answers: Iterable[Answer] | Callable[[Request], Answer], *, hides_warm_ups: bool = False
    ) -> None:
        """If it hides warm-ups, it answers requests for one token by itself, and does not keep them."""
        self._hides_warm_ups = hides_warm_ups
        script = None if callable(answers) else iter(answers)
        self._answer = answers if callable(answers) else lambda request: next(script or iter(()))
        self.requests: list[Request] = []
        self.stalled = asyncio.Event()
        """Set when a stream stalls."""
        self.left = asyncio.Event()
        """Set when a client goes away in the middle of a stream."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handles one request, and returns whether the connection can be reused."""
        request = await _read(reader)
        if self._hides_warm_ups and request.method == "POST" and request.body.get("max_tokens") == 1:
            answer = words("Hello.")
        else:
            self.requests.append(request)
            answer = self._answer(request)
        if answer is HANG_UP:
            return False
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} Said\r\n{head}\r\n".encode())
        for piece in answer.pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(answer.pause_s)
        if answer.end is End.STALL:
            self.stalled.set()
            await reader.read()
            self.left.set()
        if answer.end is not End.CLEAN:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


class ScriptedChatServer(ChatServer):
    """Gives answers as a test adds them. A request that only warms the model up gets an answer of its own."""

    def __init__(self) -> None:
        super().__init__(self._next_answer)
        self._script: list[Answer] = []

    def will_answer(self, *answers: Answer) -> None:
        self._script += answers

    @property
    def asked(self) -> list[Request]:
        """The requests, without those that only warm the model up."""
        return [request for request in self.requests if not _warms_up(request)]

    def _next_answer(self, request: Request) -> Answer:
        return words("Warm.") if _warms_up(request) else self._script.pop(0)


def _warms_up(request: Request) -> bool:
    return bool(request.body.get("max_tokens") == 1)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ")
    return Request(path, headers, json.loads(body or b"null"), method)


@asynccontextmanager
async def serve_model(
    answers: Iterable[Answer] | Callable[[Request], Answer],
    *,
    provider: Provider = Provider.OPENAI,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[ChatServer, OpenAICompatibleModel]]:
    """Yields a server and its model `m`."""
    async with ChatServer(answers) as server:
        model = OpenAICompatibleModel(ModelReference(provider, "m", server.url), env or {}, **options)
        try:
            yield server, model
        finally:
            await model.aclose()
