"""`POST /v1/audio/transcriptions`: recognises the speech in a WAV file."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from antiphon.clock import Clock
from antiphon.gateway.api_errors import ApiError, invalid, reply, unsupported
from antiphon.gateway.audio_quota import AudioCharge, engine_failed, no_engine
from antiphon.security.quota import Account, Quota
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES
from antiphon.speech.base import Recognizer, SpeechError, Urgency

PATH: Final = "/v1/audio/transcriptions"
MAX_FILE_BYTES: Final = 25 * 1024 * 1024
"""OpenAI's limit."""
MAX_BODY_BYTES: Final = MAX_FILE_BYTES + 256 * 1024
"""The longest body: a file and the other fields."""
MAX_AUDIO_S: Final = 600
MIN_HZ: Final = 4_000
MAX_HZ: Final = 192_000
MAX_FIELDS: Final = 32
MAX_FIELD_BYTES: Final = 64 * 1024
DEFAULT_LANGUAGE: Final = "english"
LEAD: Final = bytes(MICROPHONE_HZ * SAMPLE_BYTES * 3 // 10)
"""Silence before each piece: recognisers lose a first word that begins at once."""


class Format(StrEnum):
    JSON = "json"
    TEXT = "text"
    VERBOSE_JSON = "verbose_json"


@dataclass(frozen=True, slots=True)
class Upload:
    file: bytes
    format: Format
    language: str


@dataclass(frozen=True, slots=True)
class Segment:
    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True)
class TranscriptionApi:
    recognizer: Recognizer | None
    """None on a server that does not listen."""
    quota: Quota
    clock: Clock

    async def read(self, request: Request) -> Upload:
        """Reads the form. Raises `ApiError`."""
        if self.recognizer is None:
            raise no_engine("cannot transcribe speech")
        try:
            async with request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES) as form:
                return await _read_form(form)
        except HTTPException as error:
            raise invalid(f"The body is not a valid form: {error.detail.rstrip('.')}.") from None

    async def transcribe(self, upload: Upload, account: Account) -> Response:
        """Raises `ApiError`."""
        recognizer = self.recognizer
        assert recognizer is not None
        pcm = await asyncio.to_thread(decode_file, upload.file)
        charge, segments, at_s = AudioCharge(self.quota, account, self.clock), list[Segment](), 0.0
        for piece in await asyncio.to_thread(_cut, pcm):
            seconds = len(piece) / SAMPLE_BYTES / MICROPHONE_HZ
            await charge.take(seconds)
            try:
                # Piece by piece and less urgently than the calls of this server, which must not wait for a long file.
                text = await recognizer.recognize(LEAD + piece, Urgency.SOON)
            except SpeechError as error:
                raise engine_failed(error) from error
            if text:
                segments.append(Segment(at_s, at_s + seconds, text))
            at_s += seconds
        return _respond(upload, segments, at_s)


async def _read_form(form: FormData) -> Upload:
    file, chosen = form.get("file"), form.get("response_format", Format.JSON)
    if not isinstance(file, UploadFile):
        raise invalid("Missing required parameter: 'file'.", "file", "missing_required_parameter")
    if not form.get("model"):
        raise invalid("Missing required parameter: 'model'.", "model", "missing_required_parameter")
    if chosen not in tuple(Format):
        known = ", ".join(f"`{each}`" for each in Format)
        raise unsupported("response_format", f"`response_format` must be one of {known} on this server.")
    if form.get("stream") == "true":
        raise unsupported("stream", "This server does not stream transcriptions. Leave `stream` out.")
    if "word" in form.getlist("timestamp_granularities[]"):
        raise unsupported("timestamp_granularities", "This server knows no times of words. Ask for `segment`.")
    language = form.get("language")
    return Upload(
        await file.read(), Format(str(chosen)), language if isinstance(language, str) and language else DEFAULT_LANGUAGE
    )


def decode_file(file: bytes) -> bytes:
    """Returns the recording as 16 kHz PCM. Raises `ApiError`."""
    from antiphon.audio import AudioError
    from antiphon.audio.resample import resample
    from antiphon.audio.wav import read_wav

    if not file:
        raise invalid("The file is empty.", "file")
    try:
        pcm, hz = read_wav(file)
    except AudioError as error:
        message = f"{error} This server reads WAV files; convert other formats first."
        raise ApiError(400, message, code="invalid_file_format", param="file") from None
    if not MIN_HZ <= hz <= MAX_HZ:
        raise invalid(f"The sample rate is {hz} Hz. It must be between {MIN_HZ} and {MAX_HZ} Hz.", "file")
    if len(pcm) / SAMPLE_BYTES / hz > MAX_AUDIO_S:
        message = f"The recording is longer than {MAX_AUDIO_S} seconds. Send it in parts."
        raise ApiError(413, message, code="file_too_long", param="file")
    return resample(pcm, hz, MICROPHONE_HZ)


def _cut(pcm: bytes) -> list[bytes]:
    from antiphon.audio.pauses import cut_at_pauses

    return list(cut_at_pauses(pcm))


def _respond(upload: Upload, segments: list[Segment], duration_s: float) -> Response:
    text = " ".join(segment.text for segment in segments)
    usage = {"type": "duration", "seconds": round(duration_s)}
    match upload.format:
        case Format.TEXT:
            return PlainTextResponse(f"{text}\n")
        case Format.JSON:
            return reply({"text": text, "usage": usage})
        case Format.VERBOSE_JSON:
            told: list[dict[str, Any]] = [
                {"id": id, "start": round(each.start_s, 2), "end": round(each.end_s, 2), "text": each.text}
                for id, each in enumerate(segments)
            ]
            body = {"task": "transcribe", "language": upload.language, "duration": round(duration_s, 2), "text": text}
            return reply(body | {"segments": told, "usage": usage})
