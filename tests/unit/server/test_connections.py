"""Deadlines and bounds of one connection, on a virtual clock and without a network."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from antiphon.server.connections import Deadlines, HttpConnection, WebSocketConnection

DEADLINES = Deadlines()
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)
PING = b"\x89\x81" + b"\0\0\0\0" + b"p"
PONG = b"\x8a\x01p"


class Line(asyncio.Transport):
    """A transport that only notes what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.cut_at_s: float | None = None
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def abort(self) -> None:
        self.cut_at_s = asyncio.get_running_loop().time()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self.protocol is not None
        return self.protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.cut_at_s is not None

    def close(self) -> None:
        pass

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def talk(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
    while (await receive())["type"] not in ("websocket.disconnect", "http.disconnect"):
        pass


def config() -> uvicorn.Config:
    config = uvicorn.Config(talk, log_config=None, ws_per_message_deflate=False, ws_ping_interval=None)
    config.load()
    return config


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
async def http(line: Line) -> AsyncIterator[HttpConnection]:
    connection = HttpConnection(config(), ServerState(), {}, deadlines=DEADLINES)
    line.set_protocol(connection)
    connection.connection_made(line)
    yield connection
    connection.connection_lost(None)


@pytest.fixture
async def websocket(line: Line) -> AsyncIterator[WebSocketConnection]:
    connection = WebSocketConnection(config(), ServerState(), {}, deadlines=DEADLINES)
    connection.connection_made(line)
    connection.data_received(HANDSHAKE)
    await asyncio.sleep(0.01)
    line.written = b""
    yield connection
    connection.connection_lost(None)
    await asyncio.sleep(0.01)


async def cut_after_s(line: Line) -> float | None:
    started_s = asyncio.get_running_loop().time()
    await asyncio.sleep(3600)
    return None if line.cut_at_s is None else round(line.cut_at_s - started_s)


async def test_a_silent_client_is_cut_at_the_header_deadline(http: HttpConnection, line: Line) -> None:
    assert await cut_after_s(line) == DEADLINES.header_s


async def test_an_occasional_byte_does_not_extend_the_deadline(http: HttpConnection, line: Line) -> None:
    for letter in b"GET / HT":
        http.data_received(bytes([letter]))
        await asyncio.sleep(1)
    assert await cut_after_s(line) == DEADLINES.header_s - 8


async def test_a_body_has_its_own_deadline(http: HttpConnection, line: Line) -> None:
    http.data_received(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n")
    assert await cut_after_s(line) == DEADLINES.body_s


async def test_a_request_that_is_complete_may_take_long_to_answer(http: HttpConnection, line: Line) -> None:
    http.data_received(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert await cut_after_s(line) is None


async def test_the_end_of_a_connection_ends_its_deadlines(line: Line) -> None:
    connection = HttpConnection(config(), ServerState(), {}, deadlines=DEADLINES)
    line.set_protocol(connection)
    connection.connection_made(line)
    connection.pause_writing()
    connection.connection_lost(None)
    assert await cut_after_s(line) is None


async def test_written_data_must_be_read_in_time(websocket: WebSocketConnection, line: Line) -> None:
    websocket.pause_writing()
    assert await cut_after_s(line) == DEADLINES.write_s


async def test_data_read_in_time_has_no_deadline(websocket: WebSocketConnection, line: Line) -> None:
    websocket.pause_writing()
    await asyncio.sleep(DEADLINES.write_s - 1)
    websocket.resume_writing()
    assert await cut_after_s(line) is None


async def test_a_ping_is_answered(websocket: WebSocketConnection, line: Line) -> None:
    websocket.data_received(PING)
    assert line.written == PONG


async def test_pongs_do_not_pile_up_for_a_client_that_does_not_read(websocket: WebSocketConnection, line: Line) -> None:
    websocket.pause_writing()
    websocket.data_received(PING * 1_000)
    assert line.written == b""


async def test_pings_are_answered_again_once_the_client_reads(websocket: WebSocketConnection, line: Line) -> None:
    websocket.pause_writing()
    websocket.data_received(PING)
    websocket.resume_writing()
    websocket.data_received(PING)
    assert line.written == PONG


def frame(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


@pytest.mark.parametrize("seed", range(20))
async def test_messages_arrive_whole_and_in_order_however_they_are_split(line: Line, seed: int) -> None:
    heard: list[str | bytes] = []

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            heard.append(message.get("text") or message["bytes"])

    chance = Random(seed)
    said = [f"text {at}" if chance.random() < 0.5 else chance.randbytes(641) for at in range(60)]
    sent = b""
    for each in said:
        payload, opcode = (each.encode(), Opcode.TEXT) if isinstance(each, str) else (each, Opcode.BINARY)
        cut = chance.choice([None, None, len(payload) // 2])
        sent += frame(opcode, payload[:cut], fin=cut is None)
        if cut is not None:
            sent += chance.choice([b"", PING]) + frame(Opcode.CONT, payload[cut:])
    config_ = uvicorn.Config(note, log_config=None, ws_per_message_deflate=False, ws_ping_interval=None)
    config_.load()
    connection = WebSocketConnection(config_, ServerState(), {}, deadlines=DEADLINES)
    connection.connection_made(line)
    connection.data_received(HANDSHAKE)
    await asyncio.sleep(0.01)
    while sent:
        size = chance.choice([1, 7, 300, 649, 2_000])
        connection.data_received(sent[:size])
        sent = sent[size:]
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    connection.connection_lost(None)
    await asyncio.sleep(0.01)
    assert heard == said


async def test_audio_after_a_refused_message_is_not_read(websocket: WebSocketConnection, line: Line) -> None:
    websocket.data_received(frame(Opcode.BINARY, bytes(10), fin=False))
    websocket.data_received(frame(Opcode.BINARY, bytes(640)))
    assert line.written.startswith(b"\x88")
    assert b"expected a continuation frame" in line.written
    waiting = websocket.queue.qsize()
    websocket.data_received(frame(Opcode.BINARY, bytes(640)))
    assert websocket.queue.qsize() == waiting
