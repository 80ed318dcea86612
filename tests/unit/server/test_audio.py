"""Audio on its straight way from a connection to the model, on a virtual clock and without a network."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvicorn
from starlette.routing import Router, WebSocketRoute
from structlog.testing import capture_logs
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from antiphon.protocol import client_messages as c
from antiphon.protocol import codec
from antiphon.protocol.closing import INTERNAL, TAKEN_OVER, TOO_FAST
from antiphon.security.quota import Kind, Limit, Quota, Rate
from antiphon.server.admission import Admission
from antiphon.server.authenticator import Authenticator
from antiphon.server.connections import Deadlines, WebSocketConnection
from antiphon.server.ws import MAX_REFUSED, Endpoint
from tests.fakes.calls import LoopClock, ScriptedServers, Server
from tests.fakes.scripted_live import ScriptedLive
from tests.unit.server.test_connections import HANDSHAKE, Line

FRAME_BYTES = 640


class RecordingLive(ScriptedLive):
    """Records the first sample of each frame, and the running task when it arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[int] = []
        self.tasks: list[asyncio.Task[Any] | None] = []

    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        super().send_audio(pcm, playing=playing)
        self.frames.append(int.from_bytes(pcm[:2], "little"))
        self.tasks.append(asyncio.current_task())


class Broken(ScriptedLive):
    def send_audio(self, pcm: bytes, *, playing: bool = False) -> None:
        raise ZeroDivisionError


class Socket:
    """A client's side of a connection whose other side is a whole server."""

    def __init__(self, server: Server, quota: Quota, *, has_extension: bool = True) -> None:
        stores = server.database
        authenticator = Authenticator(stores.tokens, stores.blocks, LoopClock(), required=False)
        endpoint = Endpoint(server.hub, Admission(authenticator, quota, LoopClock()), quota)
        app: Any = Router([WebSocketRoute("/ws", endpoint.talk)])
        if not has_extension:
            app = without_extensions(app)
        config = uvicorn.Config(app, log_config=None, ws_per_message_deflate=False, ws_ping_interval=None)
        config.load()
        self.line = Line()
        self.connection = WebSocketConnection(config, ServerState(), {}, deadlines=Deadlines())
        self.connection.connection_made(self.line)

    async def enter(self, **hello: Any) -> "Socket":
        self.connection.data_received(HANDSHAKE)
        await asyncio.sleep(0.01)
        self.send(text(c.Hello(**hello)))
        await asyncio.sleep(0.1)
        return self

    async def listen(self) -> "Socket":
        await self.enter()
        self.send(text(c.StartListening()))
        await asyncio.sleep(0.1)
        return self

    def send(self, *frames: bytes) -> None:
        """Sends all of them in one chunk."""
        self.connection.data_received(b"".join(frames))

    def is_closed_with(self, code: int) -> bool:
        return b"\x88" in self.line.written and code.to_bytes(2, "big") in self.line.written

    async def hang_up(self) -> None:
        self.connection.connection_lost(None)
        await asyncio.sleep(0.1)


def without_extensions(app: Any) -> Any:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "extensions": {}}, receive, send)

    return serve


def text(message: c.ClientMessage) -> bytes:
    return Frame(Opcode.TEXT, codec.encode_client(message).encode()).serialize(mask=True)


def audio(number: int) -> bytes:
    """A distinguishable frame."""
    pcm = number.to_bytes(2, "little") + bytes(FRAME_BYTES - 2)
    return Frame(Opcode.BINARY, codec.encode_microphone(pcm)).serialize(mask=True)


@pytest.fixture
async def servers() -> AsyncIterator[ScriptedServers]:
    servers = ScriptedServers()
    yield servers
    await servers.aclose()


@pytest.fixture
def model(servers: ScriptedServers) -> RecordingLive:
    servers.open(text=[], voice=[])
    servers.voice = model = RecordingLive()
    return model


@pytest.fixture
async def open_socket(servers: ScriptedServers) -> AsyncIterator[Callable[..., Socket]]:
    opened: list[Socket] = []

    def open_socket(quota: Quota | None = None, **options: Any) -> Socket:
        opened.append(Socket(servers.opened[0], quota or Quota(), **options))
        return opened[-1]

    yield open_socket
    for each in opened:
        await each.hang_up()


async def test_a_frame_reaches_the_model_before_anything_else_happens(
    model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    socket = await open_socket().listen()
    socket.send(audio(1), audio(2))
    assert model.frames == [1, 2]
    assert model.tasks == [asyncio.current_task()] * 2


async def test_audio_is_received_even_without_a_direct_audio_path(
    model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    socket = await open_socket(has_extension=False).listen()
    socket.send(audio(1), audio(2))
    assert model.frames == []
    await asyncio.sleep(0.01)
    assert model.frames == [1, 2]


async def test_audio_right_after_the_start_is_heard_from_the_first_frame(
    model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    socket = await open_socket().enter()
    socket.send(text(c.StartListening()), audio(1), audio(2))
    socket.send(audio(3))
    await asyncio.sleep(0)
    socket.send(audio(4))
    await asyncio.sleep(0.1)
    socket.send(audio(5))
    assert model.frames == [1, 2, 3, 4, 5]


async def test_audio_after_hello_and_the_start_is_heard_from_the_first_frame(
    model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    socket = open_socket()
    socket.connection.data_received(HANDSHAKE)
    await asyncio.sleep(0.01)
    socket.send(text(c.Hello()), text(c.StartListening()))
    for number in range(40):
        socket.send(audio(number))
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    assert model.frames == list(range(40))


async def test_a_frame_that_arrives_in_two_parts_keeps_its_position(
    model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    socket = await open_socket().listen()
    socket.send(audio(1), audio(2)[:300])
    socket.send(audio(2)[300:], audio(3))
    socket.send(audio(4))
    await asyncio.sleep(0.01)
    assert model.frames == [1, 2, 3, 4]


async def test_bad_audio_is_reported(model: RecordingLive, open_socket: Callable[..., Socket]) -> None:
    socket = await open_socket().listen()
    socket.send(Frame(Opcode.BINARY, bytes(FRAME_BYTES)).serialize(mask=True), audio(1))
    await asyncio.sleep(0.01)
    assert b'"bad_audio"' in socket.line.written
    assert model.frames == [1]


@pytest.mark.parametrize(
    "limit", [{Kind.MESSAGE: Limit(session=Rate(0.01, 50))}, {Kind.AUDIO_S: Limit(session=Rate(0.0001, 1))}]
)
async def test_audio_that_comes_too_fast_is_refused_and_then_closes_the_socket(
    model: RecordingLive, open_socket: Callable[..., Socket], limit: dict[Kind, Limit]
) -> None:
    socket = await open_socket(Quota(limit)).listen()
    for number in range(MAX_REFUSED):
        socket.send(audio(number))
    await asyncio.sleep(0.01)
    assert 45 < len(model.frames) <= 50
    assert socket.line.written.count(b'"too_fast"') == 1
    assert not socket.is_closed_with(TOO_FAST.code)
    for number in range(MAX_REFUSED):
        socket.send(audio(number))
    await asyncio.sleep(0.01)
    assert model.frames == list(range(len(model.frames)))
    assert socket.is_closed_with(TOO_FAST.code)


async def test_a_failure_at_a_frame_is_logged_and_closes_the_socket(
    servers: ScriptedServers, model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    servers.voice = Broken()
    socket = await open_socket().listen()
    with capture_logs() as logs:
        socket.send(audio(1), audio(2))
    await asyncio.sleep(0.01)
    assert [(line["event"], line["log_level"]) for line in logs] == [("socket_reader_failed", "error")]
    assert socket.is_closed_with(INTERNAL.code)


async def test_audio_after_goodbye_is_ignored(model: RecordingLive, open_socket: Callable[..., Socket]) -> None:
    socket = await open_socket().listen()
    socket.send(audio(1), Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=True), audio(2))
    await asyncio.sleep(0.01)
    socket.send(audio(3))
    assert model.frames == [1]


async def test_audio_of_a_socket_that_was_taken_over_is_ignored(
    servers: ScriptedServers, model: RecordingLive, open_socket: Callable[..., Socket]
) -> None:
    socket = await open_socket().listen()
    (live,) = servers.opened[0].hub.sessions.values()
    assert live.runner.outbox.link is not None
    live.runner.outbox.link.close(TAKEN_OVER)
    socket.send(audio(1))
    await asyncio.sleep(0.1)
    socket.send(audio(2))
    assert socket.is_closed_with(TAKEN_OVER.code)
    assert model.frames == []
