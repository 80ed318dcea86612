"""Speech engines behind OpenAI's audio API: OpenAI itself and compatible servers (speaches, whisper.cpp, Kokoro).

This module has the same name as the package `openai` that it imports.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Final, TypeVar

import httpx2
import openai

from antiphon.security.addresses import OPENAI_KEY, OPENAI_URL, leads_here
from antiphon.security.quotes import add_quote, quote
from antiphon.sound_format import MICROPHONE_HZ, write_wav
from antiphon.speech.base import Sound, SpeechBusy, SpeechError, Urgency, Voice, is_silent
from antiphon.speech.references import OpenAIServer

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 30.0
"""How long a server may stay silent."""
OUTPUT_HZ: Final = 24_000
"""What the API means by "pcm": 16 bits, mono, little-endian, at this rate."""
MIN_AUDIO_BYTES: Final = MICROPHONE_HZ * 2 // 10
"""OpenAI refuses less than a tenth of a second. No word is that short."""
MAX_TEXT_CHARS: Final = 4_096
"""OpenAI refuses more in one request."""
SLOWEST: Final = 0.25
FASTEST: Final = 4.0
OPENAI_VOICES: Final = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
)
FILE_MARKS: Final = (b"RIFF", b"ID3", b"OggS", b"fLaC")
"""The first bytes of files sent by servers that do not support "pcm"."""

Answer = TypeVar("Answer")


class _Service:
    """A model on a server. It holds connections and must be closed."""

    def __init__(self, url: str, model: str, key: str | None, answer_timeout_s: float) -> None:
        self.url, self.model, self.key = url, model, key
        self.name = str(OpenAIServer(model, None if url == OPENAI_URL else url))
        self.sdk = openai.AsyncOpenAI(
            base_url=url,
            api_key=key or "none",
            # The SDK's own retries would keep a caller waiting for a minute.
            max_retries=0,
            timeout=openai.Timeout(answer_timeout_s, connect=CONNECT_TIMEOUT_S),
            # A proxy must not be used for loopback addresses: it would resolve them to its own machine.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=not leads_here(url)),
        )
        # The SDK requires a key, so without one the header is removed again.
        self.headers = {} if key else {"Authorization": openai.Omit()}

    @asynccontextmanager
    async def explaining(self) -> AsyncIterator[None]:
        """Raises errors inside the block as `SpeechError`."""
        try:
            yield
        # While a body is read, the SDK lets the errors of its HTTP library through.
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise self._explain(error) from error

    async def ask(self, request: Callable[[], Awaitable[Answer]]) -> Answer:
        """Retries once if the connection breaks before an answer: a pooled connection may have died unnoticed."""
        try:
            return await request()
        except openai.APITimeoutError:
            raise
        except openai.APIConnectionError:
            return await request()

    def _explain(self, error: Exception) -> SpeechError:
        match error:
            case openai.APITimeoutError() | httpx2.TimeoutException():
                return SpeechError(f"{self.name} did not answer in time.")
            case openai.APIConnectionError() | httpx2.HTTPError():
                message = f"{self.name} cannot be reached, or broke off. Check that a server is running at {self.url}."
                return SpeechError(message)
            case openai.APIStatusError():
                return self._refusal(error)
            case _:
                return SpeechError(f"{self.name} sent an unexpected answer. Is {self.url} the right address?")

    def _refusal(self, error: openai.APIStatusError) -> SpeechError:
        status, said = error.status_code, quote(error.body, self.key)
        match status:
            case 401 | 403:
                # The server's message may contain part of the key.
                problem = "refused the API key" if self.key else "requires an API key"
                return SpeechError(f"{self.name} {problem}. Check {OPENAI_KEY}.")
            case 404:
                return SpeechError(add_quote(f"{self.name} was not found at {self.url}", said))
            case 429:
                return SpeechBusy(add_quote(f"{self.name} accepts no more requests for now", said))
            case _ if status >= 500:
                return SpeechError(add_quote(f"{self.name} had an internal error (HTTP {status})", said))
        return SpeechError(add_quote(f"{self.name} refused the request (HTTP {status})", said))


class OpenAIRecognizer:
    def __init__(self, url: str, model: str, key: str | None, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._service = _Service(url, model, key, answer_timeout_s)
        self.name = self._service.name

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if len(pcm) < MIN_AUDIO_BYTES:
            return ""
        service = self._service
        file = ("speech.wav", write_wav(pcm, MICROPHONE_HZ), "audio/wav")
        async with service.explaining():
            answer = await service.ask(
                lambda: service.sdk.audio.transcriptions.create(
                    file=file, model=service.model, extra_headers=service.headers
                )
            )
            text = getattr(answer, "text", None)
            if not isinstance(text, str):
                raise ValueError("no transcript")
        return text.strip()

    async def aclose(self) -> None:
        await self._service.sdk.close()


class OpenAISynthesizer:
    output_hz = OUTPUT_HZ

    def __init__(
        self,
        url: str,
        model: str,
        key: str | None,
        voice: str | None = None,
        *,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        """The API does not list its voices, so `voice` is assumed to exist and becomes the default.

        OpenAI's own voices are listed after it; most compatible servers have them too.
        """
        self._service = _Service(url, model, key, answer_timeout_s)
        self.name = self._service.name
        ids = dict.fromkeys([*([voice] if voice else []), *OPENAI_VOICES])
        self.voices: Sequence[Voice] = tuple(Voice(each, each.capitalize(), "und") for each in ids)

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        chosen = voice if voice and any(each.id == voice for each in self.voices) else self.voices[0].id
        speed = min(max(speed, SLOWEST), FASTEST)
        async with self._service.explaining():
            for portion in _portions(text):
                async with aclosing(self._stream(portion, chosen, speed)) as stream:
                    async for pcm in stream:
                        yield Sound(pcm, None)

    async def aclose(self) -> None:
        await self._service.sdk.close()

    async def _stream(self, text: str, voice: str, speed: float) -> AsyncGenerator[bytes, None]:
        """Yields whole samples as they arrive."""
        service = self._service
        async with AsyncExitStack() as stack:
            response = await service.ask(
                lambda: stack.enter_async_context(
                    service.sdk.audio.speech.with_streaming_response.create(
                        input=text,
                        model=service.model,
                        voice=voice,
                        response_format="pcm",
                        speed=openai.omit if speed == 1.0 else speed,
                        extra_headers=service.headers,
                    )
                )
            )
            kind = response.headers.get("content-type", "").lower()
            if kind.startswith(("text/", "application/json", "audio/mpeg")):
                raise ValueError(f"{kind} instead of PCM")
            is_first, half = True, b""
            async for piece in response.iter_bytes():
                pcm = half + piece
                if is_first and pcm.startswith(FILE_MARKS):
                    raise ValueError("a file instead of PCM")
                is_first = False
                whole = len(pcm) - len(pcm) % 2
                half = pcm[whole:]
                if whole:
                    yield pcm[:whole]


def _portions(text: str) -> Iterator[str]:
    """Splits the text into parts short enough for the API, between sentences or else between words."""
    # Half of a surrogate pair has no UTF-8.
    rest = text.encode("utf-8", "replace").decode().strip()
    while len(rest) > MAX_TEXT_CHARS:
        ends = [rest.rfind(mark, 0, MAX_TEXT_CHARS) + 1 for mark in (". ", "! ", "? ", "\n")]
        cut = max(ends) or rest.rfind(" ", 0, MAX_TEXT_CHARS) + 1 or MAX_TEXT_CHARS
        yield rest[:cut]
        rest = rest[cut:].lstrip()
    if not is_silent(rest):
        yield rest
