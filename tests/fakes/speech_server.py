"""OpenAI's audio API on loopback, around real engines. It looks at requests as closely as the original."""

import asyncio
import io
import socket
import wave
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from antiphon.audio.resample import Resampler
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.base import Recognizer, Synthesizer

KEY: Final = "sk-test"
EARS_MODEL: Final = "gpt-transcribe"
MOUTH_MODEL: Final = "gpt-4o-mini-tts"
VOICES: Final = frozenset(
    ("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse")
)
EXTENSIONS: Final = (".flac", ".mp3", ".mp4", ".mpeg", ".mpga", ".m4a", ".ogg", ".wav", ".webm")
PCM_HZ: Final = 24_000


class Refused(Exception):
    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class AudioApi:
    def __init__(self, recognizer: Recognizer | None, synthesizer: Synthesizer | None) -> None:
        self._recognizer = recognizer
        self._synthesizer = synthesizer
        self.app = Starlette(
            routes=[
                Route("/v1/audio/transcriptions", self._transcribe, methods=["POST"]),
                Route("/v1/audio/speech", self._speak, methods=["POST"]),
            ],
            exception_handlers={Refused: _refuse},
        )

    async def _transcribe(self, request: Request) -> Response:
        _check_key(request)
        assert self._recognizer is not None
        async with request.form() as form:
            file = form.get("file")
            _check_model(form.get("model"), EARS_MODEL)
            if form.get("response_format", "json") not in ("json", "verbose_json"):
                raise Refused(400, "This server answers with JSON only.")
            if not isinstance(file, UploadFile) or not (file.filename or "").endswith(EXTENSIONS):
                raise Refused(400, "Unrecognized file format.")
            pcm = _read_wav(await file.read())
        return JSONResponse({"text": await _unless_left(request, self._recognizer.recognize(pcm))})

    async def _speak(self, request: Request) -> Response:
        _check_key(request)
        asked: dict[str, Any] = await request.json()
        _check_model(asked.get("model"), MOUTH_MODEL)
        if unknown := asked.keys() - {"model", "input", "voice", "response_format", "speed"}:
            raise Refused(400, f"Unrecognized request arguments supplied: {sorted(unknown)}")
        text, speed = asked.get("input"), asked.get("speed", 1.0)
        if not isinstance(text, str) or not 0 < len(text) <= 4_096:
            raise Refused(400, "input: String should have at least 1 and at most 4096 characters")
        if asked.get("voice") not in VOICES:
            raise Refused(400, f"voice: Input should be one of {sorted(VOICES)}")
        if not isinstance(speed, int | float) or not 0.25 <= speed <= 4.0:
            raise Refused(400, "speed: Input should be from 0.25 to 4.0")
        if asked.get("response_format") != "pcm":
            raise Refused(400, "This server sends PCM only.")
        return StreamingResponse(self._sound(text, speed), media_type="audio/pcm")

    async def _sound(self, text: str, speed: float) -> AsyncIterator[bytes]:
        assert self._synthesizer is not None
        resampler = Resampler(self._synthesizer.output_hz, PCM_HZ)
        async for sound in self._synthesizer.speak(text, speed=speed):
            yield resampler.push(sound.pcm)
        yield resampler.push(b"", last=True)


@asynccontextmanager
async def serve_audio_api(
    recognizer: Recognizer | None = None, synthesizer: Synthesizer | None = None
) -> AsyncIterator[str]:
    """Gives the address, up to and with `/v1`."""
    app = AudioApi(recognizer, synthesizer).app
    server = _Server(uvicorn.Config(app, lifespan="off", log_config=None, log_level="warning", access_log=False))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([bound]))
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await serving


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are the tests' own."""
        yield


async def _unless_left(request: Request, work: Coroutine[Any, Any, str]) -> str:
    """The result, or "" to a client that is gone: nothing more is done for it."""
    working, leaving = asyncio.create_task(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else ""
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


def _check_key(request: Request) -> None:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        raise Refused(401, "Incorrect API key provided.", "invalid_api_key")


def _check_model(model: object, known: str) -> None:
    if model != known:
        raise Refused(404, f"The model `{model}` does not exist or you do not have access to it.", "model_not_found")


def _read_wav(data: bytes) -> bytes:
    try:
        with wave.open(io.BytesIO(data)) as file:
            kind = (file.getframerate(), file.getsampwidth(), file.getnchannels())
            pcm: bytes = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise Refused(400, "Audio file might be corrupted or unsupported.") from error
    if kind != (MICROPHONE_HZ, 2, 1):
        raise Refused(400, f"This server hears 16 kHz mono only, not {kind}.")
    if len(pcm) < MICROPHONE_HZ * 2 // 10:
        raise Refused(400, "Audio file is too short. Minimum audio length is 0.1 seconds.", "audio_too_short")
    return pcm


def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    body = {"message": str(error), "type": "invalid_request_error", "param": None, "code": error.code}
    return JSONResponse({"error": body}, error.status)
