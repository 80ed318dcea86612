"""Speech engines on another machine, or in another process, over Wyoming, the protocol of Home Assistant.

Each request uses its own connection: several servers close theirs after an answer, and closing it is the only way to
cancel a request.

This module has the same name as the package `wyoming` that it imports.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec
from msgspec import Struct
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeVoice

from antiphon.audio.tempo import FASTEST, SLOWEST, Tempo
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ
from antiphon.speech.base import Sound, SpeechBusy, SpeechError, SpeechUnreachable, Urgency, Voice, is_silent
from antiphon.speech.references import WyomingServer
from antiphon.speech.wyoming_wire import (
    GOES_ON,
    MAX_DATA_BYTES,
    AudioConverter,
    MalformedEvent,
    chunks,
    read_event,
    read_format,
)

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 30.0
"""The limit for a whole transcript, and for each piece of speech."""
MAX_QUOTE_CHARS: Final = 300

OWN_VOICE: Final = Voice("default", "Server default", "und")
"""Wyoming does not say which voice a server uses by default."""


class _Voice(Struct, frozen=True):
    name: str
    installed: bool = True
    description: str | None = None
    languages: tuple[str, ...] = ()


class _Speaker(Struct, frozen=True):
    voices: tuple[_Voice, ...] = ()


class _Info(Struct, frozen=True):
    """The parts of a server's description that are used here. The package's own `Info` does not validate."""

    asr: tuple[dict[str, Any], ...] = ()
    tts: tuple[_Speaker, ...] = ()


class _Connection:
    """One request to a server."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._name = name
        self._reader = reader
        self._writer = writer

    async def send(self, message: Eventable) -> None:
        await async_write_event(message.event(), self._writer)

    async def receive(self, *is_wanted: Callable[[str], bool]) -> Event:
        """Returns the next event of these types, and skips others: newer servers send more kinds."""
        while (event := await read_event(self._reader)) is not None:
            if Error.is_type(event.type):
                raise _refusal(self._name, event)
            if any(is_type(event.type) for is_type in is_wanted):
                return event
        raise ConnectionResetError


class _Server:
    def __init__(self, host: str, port: int, connect_timeout_s: float, answer_timeout_s: float) -> None:
        self._address = WyomingServer(host, port)
        self._connect_timeout_s = connect_timeout_s
        self._answer_timeout_s = answer_timeout_s
        self.name = str(self._address)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[_Connection]:
        """Opens a connection for one request. Errors inside the block are raised as `SpeechError`."""
        reader, writer = await self._open()
        try:
            yield _Connection(self.name, reader, writer)
        except TimeoutError as error:
            raise SpeechError(
                f"{self.name} did not answer within {self._answer_timeout_s:g} s. It may be overloaded."
            ) from error
        except MalformedEvent as error:
            raise SpeechError(
                f"{self.name} answered with something that is not a Wyoming event. Is it a Wyoming server?"
            ) from error
        except OSError as error:
            raise SpeechError(
                f"{self.name} closed the connection before its answer was complete. Its log may say why."
            ) from error
        finally:
            # Aborted rather than closed: nothing still in flight is needed.
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    def answer_timeout(self) -> asyncio.Timeout:
        return asyncio.timeout(self._answer_timeout_s)

    async def describe(self) -> _Info:
        async with self.connect() as connection, self.answer_timeout():
            await connection.send(Describe())
            event = await connection.receive(Info.is_type)
            try:
                return msgspec.convert(event.data, _Info)
            except msgspec.ValidationError as error:
                raise MalformedEvent("no description of a server") from error

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._address.host, self._address.port
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await asyncio.open_connection(host, port, limit=MAX_DATA_BYTES)
        # A UnicodeError is raised for a host name that is not valid.
        except (OSError, UnicodeError) as error:
            raise SpeechUnreachable(
                f"{self.name} cannot be reached. Check that a Wyoming server is running there."
            ) from error


class WyomingRecognizer:
    """Sends audio unchanged. The server handles silence and languages."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        self._server = _Server(host, port, connect_timeout_s, answer_timeout_s)
        self.name = self._server.name

    async def open(self) -> None:
        """Checks that the server recognises speech; optional. Raises `SpeechError`."""
        if not (await self._server.describe()).asr:
            raise SpeechError(f"{self.name} does not recognise speech. Set speech.stt to a server that does.")

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if not pcm:
            return ""
        sound = {"rate": MICROPHONE_HZ, "width": 2, "channels": 1}
        async with self._server.connect() as connection, self._server.answer_timeout():
            await connection.send(Transcribe())
            await connection.send(AudioStart(**sound))
            for piece in chunks(pcm):
                await connection.send(AudioChunk(**sound, audio=piece))
            await connection.send(AudioStop())
            text = (await connection.receive(Transcript.is_type)).data.get("text")
            if not isinstance(text, str):
                raise MalformedEvent("a transcript without a text")
            return text.strip()

    async def aclose(self) -> None:
        """Does nothing: no connection is open between requests."""


class WyomingSynthesizer:
    """Wyoming has no setting for the speed of speech, so it is changed here."""

    # A server announces its rate only with the audio itself, so everything is resampled to this one.
    output_hz = SPEECH_HZ

    def __init__(
        self,
        host: str,
        port: int,
        voice: str | None = None,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        """`voice` becomes the default if the server has it."""
        self._server = _Server(host, port, connect_timeout_s, answer_timeout_s)
        self._voice = voice
        self.name = self._server.name
        self.voices: Sequence[Voice] = (OWN_VOICE,)

    async def open(self) -> None:
        """Loads the list of voices; optional. Raises `SpeechError` if the server does not synthesise speech."""
        programs = (await self._server.describe()).tts
        if not programs:
            raise SpeechError(f"{self.name} does not speak. Set speech.tts to a server that does.")
        voices = [
            Voice(voice.name, voice.description or voice.name, "".join(voice.languages[:1]).replace("_", "-") or "und")
            for program in programs
            for voice in program.voices
            if voice.installed
        ]
        usual = next((each for each in voices if each.id == self._voice), OWN_VOICE)
        self.voices = (usual, *(each for each in voices if each.id != usual.id))

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        if is_silent(text):
            return
        usual = self.voices[0].id
        chosen = voice if any(each.id == voice for each in self.voices) else usual
        tempo = Tempo(min(max(speed, SLOWEST), FASTEST), SPEECH_HZ)
        async with self._server.connect() as connection:
            # Half of a surrogate pair has no UTF-8.
            whole = text.encode("utf-8", "replace").decode()
            wanted = None if chosen == OWN_VOICE.id else SynthesizeVoice(chosen)
            async with self._server.answer_timeout():
                await connection.send(Synthesize(whole, wanted, context={GOES_ON: True} if goes_on else None))
            converter: AudioConverter | None = None
            while True:
                async with self._server.answer_timeout():
                    event = await connection.receive(AudioStart.is_type, AudioChunk.is_type, AudioStop.is_type)
                if AudioStop.is_type(event.type):
                    break
                converter = converter or AudioConverter(read_format(event), SPEECH_HZ)
                for piece in chunks(event.payload):
                    if pcm := tempo.push(converter.push(piece)):
                        yield Sound(pcm, None)
        if converter is not None and (pcm := tempo.push(converter.push(b"", last=True), last=True)):
            yield Sound(pcm, None)

    async def aclose(self) -> None:
        """Does nothing: no connection is open between requests."""


def _refusal(name: str, event: Event) -> SpeechError:
    """Quotes the server's error on one line. An Antiphon server also sends the code for busy."""
    said = " ".join(str(event.data.get("text") or "it did not say why.").split())
    kind = SpeechBusy if event.data.get("code") == SpeechBusy.code else SpeechError
    return kind(f"{name} could not do it: {said[:MAX_QUOTE_CHARS]}")
