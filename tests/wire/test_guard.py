"""A real server on loopback, and everything that a hostile network may send to it."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close

from antiphon.security.origin import own_origins
from antiphon.server.connections import MAX_FRAGMENTS, MAX_HEADER_BYTES, Deadlines
from antiphon.server.guard import MAX_BODY_BYTES, Guard
from antiphon.server.serving import Server, listen, run_loop

pytestmark = pytest.mark.real_time

DEADLINES = Deadlines(header_s=0.5, body_s=0.5, write_s=0.5, linger_s=1.0)
KEY = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
UPGRADE = f"connection: upgrade\r\nupgrade: websocket\r\n{KEY}"


@dataclass
class Site:
    port: int
    flood_ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def send(self, request: bytes) -> bytes:
        """The server's response to these bytes, until it closes or pauses."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = b""
        with suppress(TimeoutError):
            while piece := await asyncio.wait_for(reader.read(65_536), 1 if answer else 5):
                answer += piece
        writer.close()
        return answer

    async def handshake(self, *, host: str | None = None, origins: tuple[str, ...] = (), extra: str = "") -> bytes:
        lines = f"host: {host or f'localhost:{self.port}'}\r\n" + "".join(f"origin: {each}\r\n" for each in origins)
        return await self.send(f"GET /ws HTTP/1.1\r\n{lines}{UPGRADE}{extra}\r\n".encode("latin-1"))

    async def get(self, *, host: str, extra: str = "") -> bytes:
        return await self.send(f"GET / HTTP/1.1\r\nhost: {host}\r\n{extra}\r\n".encode("latin-1"))

    async def post(self, body: bytes, header: str) -> bytes:
        head = f"POST /api/echo HTTP/1.1\r\nhost: localhost\r\n{header}\r\n\r\n"
        return await self.send(head.encode() + body)


def status(answer: bytes) -> int:
    return int(answer.split()[1])


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    sockets = listen("127.0.0.1", 0)
    site = Site(sockets[0].getsockname()[1])

    async def page(request: Request) -> PlainTextResponse:
        return PlainTextResponse("page")

    async def echo(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def talk(websocket: WebSocket) -> None:
        await websocket.accept()
        try:
            while True:
                message = await websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                await websocket.send_text(f"{len(message.get('text') or message.get('bytes') or '')}")
        except WebSocketDisconnect:
            return

    async def flood(websocket: WebSocket) -> None:
        await websocket.accept()
        try:
            while True:
                await websocket.send_bytes(bytes(65_536))
        except WebSocketDisconnect:
            site.flood_ended.set()

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/api/echo", echo, methods=["POST"]),
            WebSocketRoute("/ws", talk),
            WebSocketRoute("/flood", flood),
        ]
    )
    guard = Guard(app, origins=own_origins("127.0.0.1", site.port))
    server = Server(guard, host="127.0.0.1", port=site.port, deadlines=DEADLINES)
    thread = threading.Thread(target=lambda: run_loop(server.serve(sockets)))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield site
    server.should_exit = True
    thread.join()


# Who may connect


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://localhost",
        "http://localhost:{other}",
        "https://localhost:{port}",
        "http://localhost:{port}.evil.example",
        "http://localhost.evil.example:{port}",
        "http://localhost:{port}@evil.example",
        "http://evil@localhost:{port}",
        "http://localhost.:{port}",
        "http://localhost:{port}/",
        "http://[::ffff:127.0.0.1]:{port}",
    ],
)
async def test_a_handshake_from_another_page_is_refused(site: Site, origin: str) -> None:
    answer = await site.handshake(origins=(origin.format(port=site.port, other=site.port + 1),))
    assert status(answer) == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
async def test_a_handshake_from_our_own_page_is_accepted(site: Site, host: str) -> None:
    assert status(await site.handshake(origins=(f"http://{host}:{site.port}",))) == 101


async def test_a_handshake_from_a_program_is_accepted(site: Site) -> None:
    assert status(await site.handshake()) == 101


async def test_a_handshake_with_two_origins_is_refused(site: Site) -> None:
    own = f"http://localhost:{site.port}"
    assert status(await site.handshake(origins=(own, own))) == 400


async def test_a_post_from_another_page_is_refused(site: Site) -> None:
    assert status(await site.post(b"", "content-length: 0\r\norigin: https://evil.example")) == 403


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "localhost.", "127.0.0.2", "[::2]", "[::]"])
async def test_a_dns_rebound_host_name_is_refused(site: Site, host: str) -> None:
    assert status(await site.get(host=f"{host}:{site.port}")) == 421


async def test_a_handshake_with_a_dns_rebound_host_name_is_refused(site: Site) -> None:
    host = f"evil.example:{site.port}"
    assert status(await site.handshake(host=host, origins=(f"http://{host}",))) == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_our_own_host_names_are_accepted(site: Site, host: str) -> None:
    assert status(await site.get(host=f"{host}:{site.port}")) == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ("host: evil.example", "wrong_host"),
        ("host: localhost\r\norigin: https://evil.example", "wrong_origin"),
        (f"host: localhost\r\ncontent-length: {MAX_BODY_BYTES + 1}", "too_large"),
    ],
)
async def test_a_refusal_is_json(site: Site, headers: str, code: str) -> None:
    answer = await site.send(f"POST /api/echo HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert json.loads(body)["error"]["code"] == code


async def test_a_refused_handshake_says_what_to_do(site: Site) -> None:
    answer = await site.handshake(origins=("https://evil.example",))
    assert "server.origins" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
async def test_every_response_has_the_security_headers(site: Site, host: str) -> None:
    answer = await site.get(host=host)
    assert b"content-security-policy: default-src 'none';" in answer
    assert b"x-content-type-options: nosniff" in answer
    assert b"server:" not in answer.lower()


# How much they may send


async def test_a_body_of_one_mebibyte_is_accepted(site: Site) -> None:
    answer = await site.post(b"x" * MAX_BODY_BYTES, f"content-length: {MAX_BODY_BYTES}")
    assert answer.endswith(b"1048576")


@pytest.mark.parametrize(
    "header",
    [
        "POST /api/echo HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
        "POST /api/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0",
        "POST /api/echo HTTP/1.0\r\ntransfer-encoding: chunked",
    ],
)
async def test_a_body_of_ambiguous_length_closes_the_connection(site: Site, header: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    smuggled = b"0\r\n\r\nGET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
    writer.write(f"{header}\r\nhost: localhost\r\n\r\n".encode() + smuggled)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert status(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_declared_body_over_a_mebibyte_is_refused(site: Site) -> None:
    assert status(await site.post(b"x" * 4096, f"content-length: {MAX_BODY_BYTES + 1}")) == 413


async def test_a_chunked_body_over_a_mebibyte_is_refused(site: Site) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    assert status(await site.post(chunk * 17 + b"0\r\n\r\n", "transfer-encoding: chunked")) == 413


async def test_an_endless_header_is_refused(site: Site) -> None:
    answer = await site.get(host="localhost", extra=f"x: {'y' * MAX_HEADER_BYTES}")
    assert status(answer) == 400


async def closing(caller: ClientConnection) -> Close:
    """Reads the remaining messages, and returns how the server closed."""

    async def listen_on() -> None:
        while True:
            await caller.recv()

    with pytest.raises(ConnectionClosed) as closed:
        await asyncio.wait_for(listen_on(), 5)
    assert closed.value.rcvd is not None, "the connection was cut without a close frame"
    return closed.value.rcvd


async def test_a_frame_of_64_kib_is_accepted(site: Site) -> None:
    async with connect(site.url) as caller:
        await caller.send(bytes(65_536))
        assert await caller.recv() == "65536"


@pytest.mark.parametrize("size", [65_537, 1_000_000])
async def test_a_longer_frame_is_closed_with_1009(site: Site, size: int) -> None:
    async with connect(site.url) as caller:
        with suppress(ConnectionClosed):  # The server may close before everything was sent.
            await caller.send(bytes(size))
        assert (await closing(caller)).code == 1009


async def test_fragments_are_counted_together(site: Site) -> None:
    async with connect(site.url) as caller:
        await caller.send([bytes(30_000)] * 3)
        assert (await closing(caller)).code == 1009


async def test_a_message_in_a_few_fragments_is_accepted(site: Site) -> None:
    async with connect(site.url) as caller:
        await caller.send([b"ab", b"", b"cd"])
        assert await caller.recv() == "4"


async def test_endless_empty_fragments_are_refused(site: Site) -> None:
    async with connect(site.url) as caller:
        await caller.send([b""] * (MAX_FRAGMENTS + 1))
        assert (await closing(caller)).code == 1009


async def test_compression_is_not_negotiated(site: Site) -> None:
    answer = await site.handshake(extra="sec-websocket-extensions: permessage-deflate\r\n")
    assert status(answer) == 101
    assert b"sec-websocket-extensions" not in answer.lower()


async def test_a_compressed_frame_is_a_protocol_error(site: Site) -> None:
    async with connect(site.url, compression=None) as caller:
        caller.transport.write(b"\xc1\x81" + b"\0\0\0\0" + b"x")
        assert (await closing(caller)).code == 1002


@pytest.mark.parametrize("text", [b"\xff", b"ok \xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
async def test_text_that_is_not_utf_8_is_closed_with_1007(site: Site, text: bytes) -> None:
    async with connect(site.url) as caller:
        await caller.send(text, text=True)
        assert (await closing(caller)).code == 1007


async def test_text_that_is_not_utf_8_is_logged_as_one_line(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with connect(site.url) as caller:
            await caller.send(b"secret \xff", text=True)
            await closing(caller)
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


async def test_misbehaving_clients_do_not_disturb_a_call(site: Site) -> None:
    async with connect(site.url) as caller, connect(site.url) as other:
        await other.send(bytes(1_000_000))
        await closing(other)
        await caller.send("still here")
        assert await caller.recv() == "10"


# How long they may take


async def seconds_until_cut(site: Site, start: bytes, drip: bytes) -> float:
    """Sends the start, then a little data ten times a second, until the server disconnects."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(start)
    begun_s = time.monotonic()

    async def go_on() -> None:
        while drip:
            await asyncio.sleep(0.1)
            writer.write(drip)

    dripping = asyncio.create_task(go_on())
    try:
        async with asyncio.timeout(4):
            while await reader.read(65_536):
                pass
    except ConnectionError:
        pass
    finally:
        dripping.cancel()
        writer.close()
    return time.monotonic() - begun_s


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (b"", b""),
        (b"", b"G"),
        (b"GET / HTTP/1.1\r\n", b"x: y\r\n"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", b"G"),
        (b"POST /api/echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n", b"x"),
        (b"POST /api/echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n", b"x"),
    ],
    ids=["silent", "first letter", "slow header", "second header", "slow body", "refused body"],
)
async def test_a_client_that_takes_too_long_is_disconnected(site: Site, start: bytes, drip: bytes) -> None:
    assert 0.4 < await seconds_until_cut(site, start, drip) < 2


async def test_a_websocket_outlives_the_request_deadlines(site: Site) -> None:
    async with connect(site.url) as caller:
        await asyncio.sleep(2 * DEADLINES.header_s)
        await caller.send("late")
        assert await caller.recv() == "4"


async def test_a_client_that_never_reads_is_disconnected_and_others_are_not_disturbed(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port)) as stuck:
        stuck.sendall(f"GET /flood HTTP/1.1\r\nhost: localhost\r\n{UPGRADE}\r\n".encode())
        async with connect(site.url) as caller:
            for _ in range(10):
                await caller.send("hello")
                assert await asyncio.wait_for(caller.recv(), 1) == "5"
        assert await asyncio.to_thread(site.flood_ended.wait, 5)
