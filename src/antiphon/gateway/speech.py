"""`POST /v1/audio/speech`: speaks a text, as a WAV file or as PCM that is streamed while it is made."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta, Struct
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from antiphon.clock import Clock
from antiphon.gateway.api_errors import invalid, unsupported
from antiphon.gateway.audio_quota import AudioCharge, engine_failed, no_engine
from antiphon.gateway.chat_request import explain
from antiphon.gateway.connected import RequestWork, explain_failure
from antiphon.security.quota import Account, Quota
from antiphon.sound_format import write_wav
from antiphon.speech.base import Sound, SpeechError, Synthesizer
from antiphon.speech.clauses import Clauses
from antiphon.speech.spoken import speakable

OUTPUT_HZ: Final = 24_000
"""OpenAI's rate for PCM."""
MAX_CHARS: Final = 4_096
CHARS_PER_S: Final = 14.0
"""How fast voices speak, to charge for a clause before it is made."""

OPENAI_VOICES: Final = frozenset(
    "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split()  # noqa: SIM905
)
"""Names that stock clients send unless told otherwise. They mean this server's own voice."""


class Format(StrEnum):
    WAV = "wav"
    PCM = "pcm"


class CustomVoice(Struct):
    id: str


class Body(Struct, forbid_unknown_fields=True):
    input: Annotated[str, Meta(max_length=MAX_CHARS)]
    model: str
    voice: str | CustomVoice
    response_format: str | None = None
    speed: Annotated[float, Meta(ge=0.25, le=4.0)] = 1.0
    stream_format: str | None = None
    instructions: Any = None


@dataclass(frozen=True, slots=True)
class SpeechWanted:
    text: str
    voice: str
    speed: float
    format: Format


@dataclass(frozen=True, slots=True)
class SpeechApi:
    synthesizer: Synthesizer | None
    """None on a server that does not speak."""
    usual_voice: str
    quota: Quota
    clock: Clock

    def read(self, body: bytes) -> SpeechWanted:
        """Raises `ApiError`."""
        if self.synthesizer is None:
            raise no_engine("cannot speak")
        try:
            read = msgspec.json.decode(body, type=Body)
        except msgspec.ValidationError as error:
            raise explain(error) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise invalid(f"The body is not JSON: {str(error).rstrip('.')}.") from None
        if read.stream_format not in (None, "audio"):
            raise unsupported("stream_format", "This server sends audio, not events. Leave `stream_format` out.")
        chosen = Format.WAV if read.response_format is None else read.response_format
        if chosen not in tuple(Format):
            message = f"This server makes `wav` and `pcm` (24 kHz, 16 bits, mono), not `{chosen[:40]}`."
            raise unsupported("response_format", message)
        text = speakable(read.input)
        if not text:
            raise invalid("There is nothing to speak in `input`.", "input")
        return SpeechWanted(text, self._find_voice(read.voice), read.speed, Format(chosen))

    def _find_voice(self, voice: str | CustomVoice) -> str:
        assert self.synthesizer is not None
        name = voice if isinstance(voice, str) else voice.id
        known = [each.id for each in self.synthesizer.voices]
        if name in known:
            return name
        if name.lower() in OPENAI_VOICES:
            return self.usual_voice
        message = f"There is no voice `{name[:100]}` on this server. Use one of: {', '.join(known)}."
        raise invalid(message, "voice", "voice_not_found")

    def speak(self, wanted: SpeechWanted, account: Account, work: RequestWork) -> Response:
        pieces = self._synthesize(wanted, AudioCharge(self.quota, account, self.clock))
        return SpeechStream(pieces, wanted.format, work)

    async def _synthesize(self, wanted: SpeechWanted, charge: AudioCharge) -> AsyncIterator[bytes]:
        """Yields PCM. Raises `ApiError`."""
        from antiphon.audio.resample import Resampler

        synthesizer = self.synthesizer
        assert synthesizer is not None
        resampler, clauses, goes_on = Resampler(synthesizer.output_hz, OUTPUT_HZ), Clauses(), False
        for clause in [*clauses.push(wanted.text), *clauses.finish()]:
            await charge.take(len(clause) / CHARS_PER_S / wanted.speed)
            sounds = synthesizer.speak(clause, voice=wanted.voice, speed=wanted.speed, goes_on=goes_on)
            try:
                async with aclosing(cast("AsyncGenerator[Sound, None]", sounds)):
                    async for sound in sounds:
                        yield resampler.push(sound.pcm)
            except SpeechError as error:
                raise engine_failed(error) from error
            goes_on = True
        yield resampler.push(b"", last=True)


class SpeechStream(Response):
    """Speech as it is made. A WAV file is sent when it is complete, since it begins with its length."""

    def __init__(self, pieces: AsyncIterator[bytes], format: Format, work: RequestWork) -> None:
        super().__init__(media_type="audio/wav" if format is Format.WAV else "audio/pcm")
        del self.headers["content-length"]
        self._pieces = pieces
        self._format = format
        self._work = work
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._work.run(self._write(send), receive)
            return
        except ClientDisconnect:
            return
        except Exception as error:
            failed = explain_failure(error, scope["path"])
        # A response without its end is the only way to tell a client that the rest of the speech is missing.
        if not self._has_begun:
            await failed.response()(scope, receive, send)

    async def _write(self, send: Send) -> None:
        async with aclosing(cast("AsyncGenerator[bytes, None]", self._pieces)) as pieces:
            if self._format is Format.WAV:
                sound = write_wav(b"".join([piece async for piece in pieces]), OUTPUT_HZ)
                await self._send(send, sound)
            else:
                async for piece in pieces:
                    if piece:
                        await self._send(send, piece)
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, piece: bytes, *, more: bool = True) -> None:
        if not self._has_begun:
            self._has_begun = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": piece, "more_body": more})
