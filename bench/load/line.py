"""The client's end of a connection, as far as both kinds of load share it."""

import asyncio
from collections.abc import Callable
from struct import Struct as Layout
from time import monotonic_ns
from typing import Final

import msgspec
from msgspec import Struct

from bench.load import wire
from bench.load.ledger import Ledger

SPEECH_HEAD: Final = Layout(">BIII")
"""The kind, and the numbers of the message, the turn and the piece."""

HELLO: Final = wire.frame(wire.TEXT, b'{"type":"hello","audio":"binary","client":"bench"}')
START: Final = wire.frame(wire.TEXT, b'{"type":"start_listening"}')


class Message(Struct):
    """The fields that are read from the server's messages."""

    type: str
    state: str = ""
    text: str = ""
    turn: int | None = None
    end_of_turn_ms: float | None = None


_decode: Final = msgspec.json.Decoder(Message).decode


class Line(asyncio.Protocol):
    """Connects, sends hello and starts listening. Subclasses handle the rest."""

    def __init__(self, address: tuple[str, int], ledger: Ledger) -> None:
        self.listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Resolved when the server listens for the first time."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.turns = 0
        """How many turns have ended."""
        self.ledger = ledger
        self._address = address
        self._frames = wire.Frames()
        self._shaking = b""
        self._upgraded = False
        self._leaving = False
        self._playing: asyncio.TimerHandle | None = None

    def speak(self) -> None:
        """Sends the next frame of the microphone."""
        raise NotImplementedError

    def read(self, message: Message, now_ns: int) -> None:
        raise NotImplementedError

    def hear(self, payload: bytes, now_ns: int) -> None:
        """Handles a piece of speech from the server."""
        raise NotImplementedError

    def play_until(self, end_s: float, turn: int) -> None:
        """Plays an answer to its end, and then tells the server."""
        self._playing = asyncio.get_running_loop().call_at(end_s, self._play, turn)

    def finish_playing(self, now_ns: int) -> None:
        """Called when the answer was played."""

    def leave(self) -> None:
        self._leaving = True
        if self._playing is not None:
            self._playing.cancel()
        self.write(wire.frame(wire.CLOSE, wire.NORMAL))

    def fail(self, problem: str) -> None:
        self.ledger.problems.append(problem)
        if not self.listening.done():
            self.listening.set_exception(ConnectionError(problem))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.write: Callable[[bytes], None] = transport.write
        self.write(wire.handshake(*self._address))

    def data_received(self, data: bytes) -> None:
        now_ns = monotonic_ns()
        if not self._upgraded:
            self._shaking += data
            head, end, data = self._shaking.partition(b"\r\n\r\n")
            if not end:
                return
            self._upgraded = True
            if not head.startswith(b"HTTP/1.1 101"):
                self.fail(head.split(b"\r\n")[0].decode())
                return
            self.write(HELLO + START)
        for opcode, payload in self._frames.feed(data):
            self._take(opcode, payload, now_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set_result(None)
        if not self._leaving:
            self.fail(f"the connection was lost ({exc or 'closed'})")

    def _take(self, opcode: int, payload: bytes, now_ns: int) -> None:
        match opcode:
            case wire.BINARY:
                self.hear(payload, now_ns)
            case wire.TEXT:
                self._take_message(_decode(payload), now_ns)
            case wire.PING:
                self.write(wire.frame(wire.PONG, payload))
            case wire.CLOSE if not self._leaving:
                self.fail(f"the server closed: {payload[2:].decode()}")

    def _take_message(self, message: Message, now_ns: int) -> None:
        if message.type in ("error", "notice"):
            self.fail(f"the server said: {message}")
        elif message.type == "state" and message.state == "listening" and not self.listening.done():
            self.listening.set_result(None)
        else:
            self.read(message, now_ns)

    def _play(self, turn: int) -> None:
        self._playing = None
        self.finish_playing(monotonic_ns())
        self.write(wire.frame(wire.TEXT, b'{"type":"playback_done","turn":%d}' % turn))
