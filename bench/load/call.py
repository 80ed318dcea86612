"""One session of the load: it streams its microphone, plays what it hears, and notes how long each message took."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct as Layout
from time import monotonic_ns
from typing import Final

import msgspec
from msgspec import Struct

from bench.load import wire
from bench.load.model import PIECE_MS, STAMP

FRAME_MS: Final = 20
_QUIET: Final = bytes(2 * 16 * FRAME_MS - STAMP.size)
_SPEECH_HEAD: Final = Layout(">BIII")
"""A kind, then the number of the message, of the turn and of the piece."""

HELLO: Final = wire.frame(wire.TEXT, b'{"type":"hello","audio":"binary","client":"bench"}')
START: Final = wire.frame(wire.TEXT, b'{"type":"start_listening"}')


class Message(Struct):
    """What is read of a server's message, whichever it is."""

    type: str
    state: str = ""
    text: str = ""
    turn: int = 0


_decode: Final = msgspec.json.Decoder(Message).decode


@dataclass(slots=True)
class Ledger:
    """What all sessions of a run have seen."""

    begin_ns: int = 0
    end_ns: int = 0
    """Only what was caused between the two is noted."""
    took_ms: dict[str, list[float]] = field(default_factory=dict)
    """By the kind of message: from its cause to its arrival."""
    turns: int = 0
    """That were begun and ended."""
    problems: list[str] = field(default_factory=list)

    def note(self, kind: str, cause_ns: int, now_ns: int) -> None:
        if self.begin_ns <= cause_ns < self.end_ns:
            self.took_ms.setdefault(kind, []).append((now_ns - cause_ns) / 1e6)
            self.turns += kind == "listening"


class Call(asyncio.Protocol):
    """Speaks all the time, as an open microphone does, until it is told to be quiet."""

    def __init__(self, address: tuple[str, int], ledger: Ledger) -> None:
        self.listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the server listens for the first time."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.turns = 0
        self._address = address
        self._ledger = ledger
        self._frames = wire.Frames()
        self._shaking = b""
        self._upgraded = False
        self._leaving = False
        self._state_since_ns = 0
        """When the state came for which the next message has the cause."""
        self._playing: asyncio.TimerHandle | None = None
        self._play_until_s = 0.0
        self._played_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._write: Callable[[bytes], None] = transport.write
        self._write(wire.handshake(*self._address))

    def data_received(self, data: bytes) -> None:
        now_ns = monotonic_ns()
        if not self._upgraded:
            self._shaking += data
            head, end, data = self._shaking.partition(b"\r\n\r\n")
            if not end:
                return
            self._upgraded = True
            if not head.startswith(b"HTTP/1.1 101"):
                self._fail(head.split(b"\r\n")[0].decode())
                return
            self._write(HELLO + START)
        for opcode, payload in self._frames.feed(data):
            self._take(opcode, payload, now_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set_result(None)
        if not self._leaving:
            self._fail(f"the connection was lost ({exc or 'closed'})")

    def speak(self) -> None:
        """Sends the next frame of the microphone, stamped."""
        self._write(wire.frame(wire.BINARY, b"\0" + STAMP.pack(monotonic_ns()) + _QUIET))

    def leave(self) -> None:
        self._leaving = True
        if self._playing is not None:
            self._playing.cancel()
        self._write(wire.frame(wire.CLOSE, wire.NORMAL))

    def _take(self, opcode: int, payload: bytes, now_ns: int) -> None:
        match opcode:
            case wire.BINARY:
                self._hear(payload, now_ns)
            case wire.TEXT:
                self._read(_decode(payload), now_ns)
            case wire.PING:
                self._write(wire.frame(wire.PONG, payload))
            case wire.CLOSE if not self._leaving:
                self._fail(f"the server closed: {payload[2:].decode()}")

    def _read(self, message: Message, now_ns: int) -> None:
        match message:
            case Message(type="state", state="listening"):
                if self.listening.done():
                    self.turns += 1
                    self._ledger.note("listening", self._played_ns, now_ns)
                else:
                    self.listening.set_result(None)
            case Message(type="state"):
                self._state_since_ns = now_ns
            case Message(type="transcript"):
                cause_ns = int(message.text)
                self._ledger.note("processing", cause_ns, self._state_since_ns)
                self._ledger.note("transcript", cause_ns, now_ns)
            case Message(type="response_chunk"):
                self._ledger.note("response_chunk", int(message.text), now_ns)
            case Message(type="response"):
                self._ledger.note("response", int(message.text.split()[-1]), now_ns)
            case Message(type="generation_complete"):
                self._playing = asyncio.get_running_loop().call_at(self._play_until_s, self._play, message.turn)
            case Message(type="error" | "notice"):
                self._fail(f"the server said: {message}")

    def _hear(self, payload: bytes, now_ns: int) -> None:
        _, _, _, piece = _SPEECH_HEAD.unpack_from(payload)
        (cause_ns,) = STAMP.unpack_from(payload, _SPEECH_HEAD.size)
        self._ledger.note("audio", cause_ns, now_ns)
        if piece == 0:
            self._ledger.note("speaking", cause_ns, self._state_since_ns)
            self._play_until_s = now_ns / 1e9
        self._play_until_s += PIECE_MS / 1000

    def _play(self, turn: int) -> None:
        """To the end. The server hears of it."""
        self._playing = None
        self._played_ns = monotonic_ns()
        self._write(wire.frame(wire.TEXT, b'{"type":"playback_done","turn":%d}' % turn))

    def _fail(self, problem: str) -> None:
        self._ledger.problems.append(problem)
        if not self.listening.done():
            self.listening.set_exception(ConnectionError(problem))
