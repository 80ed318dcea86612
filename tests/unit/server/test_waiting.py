"""A connection is not read while a message waits for the application, and what is written leaves at once."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from antiphon.server.connections import Deadlines, HttpConnection, WebSocketConnection
from antiphon.server.serving import listen, run_loop

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)
FRAME = b"\x82\x83" + b"\0\0\0\0" + b"\0\1\2"


class Line(asyncio.Transport):
    """A transport that notes whether it is read from."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


async def talk(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


def config() -> uvicorn.Config:
    config = uvicorn.Config(talk, log_config=None, ws_per_message_deflate=False, ws_ping_interval=None)
    config.load()
    return config


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
async def websocket(line: Line) -> AsyncIterator[WebSocketConnection]:
    connection = WebSocketConnection(config(), ServerState(), {}, deadlines=Deadlines())
    connection.connection_made(line)
    connection.data_received(HANDSHAKE)
    await asyncio.sleep(0.01)
    yield connection
    connection.connection_lost(None)
    await asyncio.sleep(0.01)


async def test_nothing_more_is_read_while_a_message_waits(websocket: WebSocketConnection, line: Line) -> None:
    websocket.data_received(FRAME)
    assert not line.is_read


async def test_reading_resumes_when_all_messages_are_taken(websocket: WebSocketConnection, line: Line) -> None:
    for _ in range(3):
        websocket.data_received(FRAME)
    await asyncio.sleep(0.01)
    assert line.is_read


@pytest.mark.parametrize("run", [asyncio.run, run_loop])
def test_a_small_message_is_sent_at_once(run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    run(expect_no_delay())


async def expect_no_delay() -> None:
    [listening] = listen("127.0.0.1", 0)
    accepted: list[HttpConnection] = []

    def accept() -> HttpConnection:
        accepted.append(HttpConnection(config(), ServerState(), {}, deadlines=Deadlines()))
        return accepted[0]

    server = await asyncio.get_running_loop().create_server(accept, sock=listening)
    _, writer = await asyncio.open_connection(*listening.getsockname())
    await asyncio.sleep(0.05)
    option = accepted[0].transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
    assert option != 0
