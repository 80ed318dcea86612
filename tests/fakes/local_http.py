"""An HTTP server on loopback that answers as a test tells it, and an internet whose every host is that server."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError

from antiphon.services.http.network import Network


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


@dataclass(frozen=True)
class Reply:
    body: Any = b""
    """Bytes and texts are sent as they are, everything else as JSON."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    is_cut: bool = False
    """Whether the connection is lost after half of the body."""

    def encode(self) -> bytes:
        body = self.body
        if not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        whole = f"HTTP/1.1 {self.status} Whatever\r\n{head}\r\n".encode() + body
        return whole[: len(whole) - (len(body) + 1) // 2] if self.is_cut else whole


Respond = Callable[[Received], Reply]


@dataclass
class LocalServer:
    respond: Respond
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    stop_listening: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.received]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = first.split(" ")
                parts = urlsplit(target)
                request = Received(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)
                self.received.append(request)
                reply = self.respond(request)
                if reply.delay_s:
                    await asyncio.sleep(reply.delay_s)
                writer.write(reply.encode())
                await writer.drain()
                if reply.is_cut:
                    break
        writer.close()


@asynccontextmanager
async def serve(respond: Respond) -> AsyncIterator[LocalServer]:
    local = LocalServer(respond)
    tasks: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await local.handle(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    local.stop_listening = server.close
    local.port = server.sockets[0].getsockname()[1]
    try:
        yield local
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Service:
    """What a server answers as. A subclass has `answer`; a test replaces answers by path, to fail."""

    replies: dict[str, Reply | Respond] = field(default_factory=dict)
    server: LocalServer = field(init=False)

    def respond(self, request: Received) -> Reply:
        reply = self.replies.get(request.path)
        if reply is None:
            return self.answer(request)
        return reply if isinstance(reply, Reply) else reply(request)

    def answer(self, request: Received) -> Reply:
        raise NotImplementedError


S = TypeVar("S", bound=Service)


@asynccontextmanager
async def serving(service: S) -> AsyncIterator[S]:
    async with serve(service.respond) as service.server:
        yield service


@contextmanager
def served_in_thread(respond: Respond) -> Iterator[str]:
    """Runs a server in a thread, for tests of programs that have their own event loop. Gives its address."""
    ready, url = threading.Event(), ""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run() -> None:
        nonlocal url
        async with serve(respond) as server:
            url = server.url
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield url
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def without_tls() -> Network:
    """A network for tests without https: reading the certificates takes longer than most tests."""
    return Network(tls=SSLContext(PROTOCOL_TLS_CLIENT))


@dataclass
class FakeInternet(AsyncNetworkBackend):
    """Resolves the names that a test gives it, and connects every public address to one local server."""

    server: LocalServer
    names: dict[str, list[list[str]]] = field(default_factory=dict)
    """The answers to each question about a name, in turn; the last one stays."""
    asked: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    """Addresses that do not answer."""

    def network(self) -> Network:
        return Network(self.resolve, self, SSLContext(PROTOCOL_TLS_CLIENT))

    async def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host not in self.names:
            raise OSError("Name or service not known")
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        self.dialled.append((host, port))
        if host in self.dead:
            raise ConnectError("no route")
        return await AnyIOBackend().connect_tcp("127.0.0.1", self.server.port, timeout=timeout)
