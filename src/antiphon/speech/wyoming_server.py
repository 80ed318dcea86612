"""Serves our speech engines over Wyoming, to Home Assistant or another Antiphon.

It does not use the server of the package `wyoming`, which reads as many bytes as a client announces, does not notice a
client that disconnects during a request, and leaves its tasks running when it is stopped.
"""

import asyncio
import errno
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.info import AsrModel, AsrProgram, Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize

from antiphon import __version__
from antiphon.errors import AntiphonError
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import Recognizer, Sound, SpeechError, Synthesizer
from antiphon.speech.references import WyomingServer, parse_uri
from antiphon.speech.wyoming_wire import (
    GOES_ON,
    MAX_DATA_BYTES,
    AudioConverter,
    MalformedEvent,
    chunks,
    read_event,
    read_format,
)
from antiphon.telemetry.log import get_logger

MAX_TEXT_CHARS: Final = 5_000
CLOSE_TIMEOUT_S: Final = 1.0
"""How long closing a connection may take."""

_SOUND_BYTES_PER_S: Final = MICROPHONE_HZ * 2
_MAKERS: Final = {
    "moonshine": Attribution("Moonshine AI", "https://github.com/moonshine-ai/moonshine"),
    "hibari": Attribution("Maureese Williams", "https://github.com/MMWilliams/hibari"),
    "kokoro": Attribution("hexgrad", "https://github.com/hexgrad/kokoro"),
    "piper": Attribution("OHF-Voice", "https://github.com/OHF-Voice/piper1-gpl"),
}
_log = get_logger(__name__)

Request = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that protect clients from each other."""

    clients: int = 64
    audio_s: int = 60
    """The audio of one request."""
    idle_s: float = 300.0
    """A client that sends nothing for this long is disconnected."""
    send_s: float = 30.0
    """A client that does not read its answer for this long is disconnected."""


class SpeechServerError(AntiphonError):
    """The speech server cannot listen at the given address."""

    code = "serving"


@asynccontextmanager
async def serve_wyoming(
    uri: str, recognizer: Recognizer, synthesizer: Synthesizer | None, limits: Limits | None = None
) -> AsyncIterator[str]:
    """Serves the engines until the block is left. Yields the address, which differs from `uri` if its port was 0.

    Wyoming has no authentication: any client that reaches the address can use them. Raises `SpeechReferenceError` and
    `SpeechServerError`.
    """
    address = parse_uri(uri)
    state = _Server(recognizer, synthesizer, limits or Limits())
    try:
        server = await asyncio.start_server(state.serve, address.host, address.port, limit=MAX_DATA_BYTES)
    except (OSError, UnicodeError) as error:
        raise SpeechServerError(_explain(error, address)) from error
    try:
        yield WyomingServer(address.host, server.sockets[0].getsockname()[1]).uri
    finally:
        server.close()
        await state.aclose()
        await server.wait_closed()


class _Server:
    def __init__(self, recognizer: Recognizer, synthesizer: Synthesizer | None, limits: Limits) -> None:
        self.recognizer = recognizer
        self.synthesizer = synthesizer
        self.limits = limits
        self.info = describe(recognizer, synthesizer)
        self._clients: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        client = _Client(self, reader, writer)
        try:
            if len(self._clients) > self.limits.clients:
                await client.send(Error("Too many clients are connected.", "busy"))
            else:
                await client.run()
        except MalformedEvent as error:
            _log.info("wyoming_malformed_event", reason=str(error))
        # The client disconnected or timed out, or the server is stopping.
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            await _close(writer)
            self._clients.discard(task)

    async def aclose(self) -> None:
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)


class _Client:
    """One connection. It keeps reading during a request, to notice when the client disconnects."""

    def __init__(self, state: _Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = state
        self._limits = state.limits
        self._reader = reader
        self._writer = writer
        self._audio = bytearray()
        """The audio since the last transcript: PCM16, mono, 16 kHz."""
        self._converter: AudioConverter | None = None
        self._problem: str | None = None
        """Why the current audio will be rejected."""
        self._request: asyncio.Task[None] | None = None

    async def run(self) -> None:
        try:
            while True:
                async with asyncio.timeout(self._limits.idle_s):
                    event = await read_event(self._reader)
                if event is None:
                    return
                await self._handle(event)
        finally:
            if self._request is not None:
                self._request.cancel()
                await asyncio.wait([self._request])

    async def send(self, message: Eventable) -> None:
        async with asyncio.timeout(self._limits.send_s):
            await async_write_event(message.event(), self._writer)

    async def _handle(self, event: Event) -> None:
        kind = event.type
        if Describe.is_type(kind):
            await self.send(self._server.info)
        elif Ping.is_type(kind):
            await self.send(Pong(Ping.from_event(event).text))
        elif Transcribe.is_type(kind) or AudioStart.is_type(kind):
            self._discard_audio()
        elif AudioChunk.is_type(kind):
            await self._add_audio(event)
        elif AudioStop.is_type(kind):
            await self._start_request(partial(self._transcribe, self._finish_audio(), self._problem))
        elif Synthesize.is_type(kind):
            await self._start_request(partial(self._speak, event))

    def _discard_audio(self) -> None:
        self._audio.clear()
        self._converter = None
        self._problem = None

    async def _add_audio(self, event: Event) -> None:
        """Uses the format of each chunk: some clients send no start event."""
        for piece in chunks(event.payload):
            if self._problem is not None:
                return
            self._converter = self._converter or AudioConverter(read_format(event), MICROPHONE_HZ)
            self._audio += self._converter.push(piece)
            if len(self._audio) > self._limits.audio_s * _SOUND_BYTES_PER_S:
                self._discard_audio()
                self._problem = f"The audio is longer than {self._limits.audio_s} s. Send it in shorter pieces."
            await asyncio.sleep(0)

    def _finish_audio(self) -> bytes:
        rest = self._converter.push(b"", last=True) if self._converter is not None else b""
        return bytes(self._audio) + rest

    async def _start_request(self, work: Request) -> None:
        """Runs requests one after another, since clients expect answers in order."""
        if self._request is not None:
            await asyncio.wait([self._request])
        self._request = asyncio.create_task(self._answer(work))
        self._discard_audio()

    async def _answer(self, work: Request) -> None:
        try:
            await work()
        except SpeechError as error:
            await self._refuse(str(error), error.code)
        except OSError:
            # The client does not read its answer. Aborting the connection also ends the read loop.
            self._writer.transport.abort()
        except Exception:
            _log.exception("wyoming_request_failed")
            await self._refuse("The speech server failed. Its log says why.", "internal")

    async def _refuse(self, text: str, code: str) -> None:
        with suppress(OSError):
            await self.send(Error(text, code))

    async def _transcribe(self, pcm: bytes, problem: str | None) -> None:
        if problem is not None:
            raise SpeechError(problem)
        await self.send(Transcript(await self._server.recognizer.recognize(pcm) if pcm else ""))

    async def _speak(self, event: Event) -> None:
        synthesizer = self._server.synthesizer
        text, voice = event.data.get("text"), _voice_name(event.data.get("voice"))
        if synthesizer is None:
            raise SpeechError("This server does not speak: its speech.tts is none.")
        if not isinstance(text, str) or len(text) > MAX_TEXT_CHARS:
            raise SpeechError(f"This server speaks a text of at most {MAX_TEXT_CHARS} characters.")
        sound = {"rate": synthesizer.output_hz, "width": 2, "channels": 1}
        await self.send(AudioStart(**sound))
        # Closed explicitly: a client that disconnects during a send would leave the generator open.
        goes_on = _goes_on(event.data.get("context"))
        sounds = cast("AsyncGenerator[Sound, None]", synthesizer.speak(text, voice=voice, goes_on=goes_on))
        async with aclosing(sounds):
            async for each in sounds:
                for piece in chunks(each.pcm):
                    await self.send(AudioChunk(**sound, audio=piece))
        await self.send(AudioStop())


def describe(recognizer: Recognizer, synthesizer: Synthesizer | None) -> Info:
    """Describes the engines for Home Assistant."""
    ours = Attribution("Antiphon", "")
    recognition = AsrProgram(
        name="antiphon",
        attribution=ours,
        installed=True,
        description="Antiphon speech recognition",
        version=__version__,
        models=[
            AsrModel(
                name=recognizer.name,
                attribution=_MAKERS.get(recognizer.name, ours),
                installed=True,
                description=recognizer.name,
                version=None,
                languages=["en"],
            )
        ],
    )
    if synthesizer is None:
        return Info(asr=[recognition])
    synthesis = TtsProgram(
        name="antiphon",
        attribution=ours,
        installed=True,
        description="Antiphon speech synthesis",
        version=__version__,
        voices=[
            TtsVoice(
                name=voice.id,
                attribution=_MAKERS.get(synthesizer.name, ours),
                installed=True,
                description=voice.name,
                version=None,
                languages=[voice.language],
            )
            for voice in synthesizer.voices
        ],
    )
    return Info(asr=[recognition], tts=[synthesis])


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await writer.wait_closed()
    except (OSError, asyncio.CancelledError):
        writer.transport.abort()


def _voice_name(voice: object) -> str | None:
    name = voice.get("name") if isinstance(voice, dict) else None
    return name if isinstance(name, str) else None


def _goes_on(context: object) -> bool:
    return isinstance(context, dict) and context.get(GOES_ON) is True


def _explain(error: Exception, address: WyomingServer) -> str:
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            return f"port {address.port} is in use. Choose another with --uri."
        case errno.EACCES:
            return f"port {address.port} needs permissions that this user lacks. Choose one above 1023 with --uri."
    return f"cannot listen at {address.uri}: {error}. Choose an address of this machine with --uri."
