"""A Gemini Live server that costs little and keeps time: a script on a bare protocol, not a conversation.

It speaks as much of the protocol as the contenders use: TLS, the setup first, audio in either alphabet of base64,
transcriptions, audio, the end of the generation and of the turn. Every connection hears two seconds of audio and then
gets two seconds of speech, again and again. Each message that it sends carries the time at which it was sent, and each
frame that it receives carries the time at which the client made it, by the clock that all processes of a machine share.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from struct import Struct as Layout
from time import monotonic_ns
from typing import Any, Final

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from antiphon.sim.certificates import Certificates

METHOD: Final = "GenerativeService.BidiGenerateContent"
MODEL: Final = "gemini-3.8-live"
HEARS_MS: Final = 2_000
"""How much audio makes a turn of the user."""
FIRST_MS: Final = 150
"""When the first piece of the answer comes, after the transcription."""
PIECES: Final = 20
PIECE_MS: Final = 100
EVERY_MS: Final = 50
"""The pieces come twice as fast as they are played."""
TEXT_EVERY: Final = 5
"""The words of so many pieces come together, before the first of them."""
TURN_S: Final = (HEARS_MS + FIRST_MS + PIECES * PIECE_MS) / 1000
"""How long a turn of the user and its answer take."""
STAMP: Final = Layout("<Q")
"""The first samples of each piece of audio, in both directions: when it was sent."""
OUTPUT_HZ: Final = 24_000

_INPUT_BYTES_PER_MS: Final = 2 * 16
_STAMP_CHARS: Final = 12
"""So many characters of base64 hold the stamp and one more byte."""
_AUDIO_MARKS: Final = ('"data": "', '"data":"')
_STEP: Final = 1_000
_BODIES: Final = tuple(
    (_STEP * (place + 1)).to_bytes(2, "little", signed=True) * (OUTPUT_HZ * PIECE_MS // 1000 - STAMP.size // 2)
    for place in range(PIECES)
)
"""The samples of a piece all have the same value, which tells its place even after resampling."""


def find_place(level: int) -> int:
    """Returns the place of a piece by the value of a sample from its middle."""
    return round(level / _STEP) - 1


@dataclass(slots=True)
class Simulator:
    """The state that all connections share."""

    on_frame: Callable[[int, int], None]
    """Called for each frame of audio with the time at which it was made and the time at which it arrived."""
    port: int = 0
    open: int = 0
    """How many connections are set up."""
    turns: int = 0
    frames: int = 0
    audio_sent_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    """When a piece of audio was sent, by the stamp of the question's transcription and the place of the piece."""
    problems: list[str] = field(default_factory=list)
    _opened: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def connected(self, sessions: int) -> None:
        """Waits until so many connections are set up."""
        while self.open < sessions:
            self._opened.clear()
            await self._opened.wait()

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if METHOD not in request.path:
            return connection.respond(HTTPStatus.NOT_FOUND, "no such method")
        if not request.headers.get("x-goog-api-key"):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "no key")
        return None

    async def serve(self, connection: ServerConnection) -> None:
        try:
            setup = json.loads(await connection.recv())
            if not str(setup.get("setup", {}).get("model", "")).startswith("models/"):
                self.problems.append("The first message was not a setup.")
                await connection.close(1007, "setup must be the first message and only the first")
                return
            await connection.send('{"setupComplete":{}}')
            await connection.send('{"sessionResumptionUpdate":{"newHandle":"handle-1","resumable":true}}')
            self.open += 1
            self._opened.set()
            try:
                await _Conversation(self, connection).listen()
            finally:
                self.open -= 1
        except ConnectionClosed:
            pass


class _Conversation:
    def __init__(self, simulator: Simulator, connection: ServerConnection) -> None:
        self._simulator = simulator
        self._connection = connection
        self._heard_bytes = 0
        self._speaking: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        try:
            async for message in self._connection:
                self._take(str(message))
        finally:
            if self._speaking is not None:
                self._speaking.cancel()

    def _take(self, message: str) -> None:
        now_ns = monotonic_ns()
        begin = _find_audio(message)
        if begin is None:
            self._take_other(json.loads(message))
            return
        # Both alphabets of base64 are sent by clients. Only the stamp is decoded, since the rest is silence.
        text = message[begin : begin + _STAMP_CHARS].replace("-", "+").replace("_", "/")
        (made_ns,) = STAMP.unpack_from(b64decode(text))
        self._simulator.frames += 1
        self._simulator.on_frame(made_ns, now_ns)
        if self._speaking is None or self._speaking.done():
            self._heard_bytes += (message.index('"', begin) - begin) * 3 // 4
            if self._heard_bytes >= HEARS_MS * _INPUT_BYTES_PER_MS:
                self._heard_bytes = 0
                self._speaking = asyncio.create_task(self._speak())

    def _take_other(self, message: dict[str, Any]) -> None:
        if not message.keys() <= {"realtime_input", "realtimeInput", "client_content", "clientContent"}:
            self._simulator.problems.append(f"The client sent {next(iter(message), 'nothing')}.")

    async def _speak(self) -> None:
        """Sends one answer. The turn is complete when the client should have played it, as with Google's server."""
        send, begun_s = self._connection.send, asyncio.get_running_loop().time()
        asked_ns = monotonic_ns()
        await send(f'{{"serverContent":{{"inputTranscription":{{"text":" {asked_ns}"}}}}}}')
        for place, body in enumerate(_BODIES):
            await _sleep_until(begun_s + (FIRST_MS + place * EVERY_MS) / 1000)
            if place % TEXT_EVERY == 0:
                await send(f'{{"serverContent":{{"outputTranscription":{{"text":" {monotonic_ns()}"}}}}}}')
            sent_ns = monotonic_ns()
            self._simulator.audio_sent_ns[asked_ns, place] = sent_ns
            data = b64encode(STAMP.pack(sent_ns) + body).decode()
            part = f'{{"inlineData":{{"mimeType":"audio/pcm;rate={OUTPUT_HZ}","data":"{data}"}}}}'
            await send(f'{{"serverContent":{{"modelTurn":{{"parts":[{part}]}}}}}}')
        await send('{"serverContent":{"generationComplete":true}}')
        await _sleep_until(begun_s + (FIRST_MS + PIECES * PIECE_MS) / 1000)
        usage = '{"promptTokenCount":50,"responseTokenCount":50,"totalTokenCount":100}'
        await send(f'{{"serverContent":{{"turnComplete":true}},"usageMetadata":{usage}}}')
        self._simulator.turns += 1


@asynccontextmanager
async def simulate(certificates: Certificates, on_frame: Callable[[int, int], None]) -> AsyncIterator[Simulator]:
    """Runs the simulator in this process."""
    simulator = Simulator(on_frame)
    async with serve(
        simulator.serve,
        "127.0.0.1",
        0,
        ssl=certificates.server_context(),
        process_request=simulator.admit,
        compression=None,
        ping_interval=None,
        max_size=None,
        close_timeout=1,
    ) as server:
        simulator.port = next(iter(server.sockets)).getsockname()[1]
        yield simulator


def _find_audio(message: str) -> int | None:
    """Returns where the audio of a message begins; None if it has none."""
    head = message[:120]
    for mark in _AUDIO_MARKS:
        if (at := head.find(mark)) >= 0:
            return at + len(mark)
    return None


async def _sleep_until(time_s: float) -> None:
    await asyncio.sleep(max(0.0, time_s - asyncio.get_running_loop().time()))
