"""The voice of a process: engines, ears and mouth, loaded once for all its sessions.

Nothing heavy is imported before a voice is wanted: a server that only reads and writes starts without it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from antiphon.config import Settings
from antiphon.models.base import TextModel
from antiphon.models.live import LiveModel
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.session.runner import GREETING
from antiphon.speech.base import Recognizer, Synthesizer
from antiphon.speech.extras import needs_extra
from antiphon.speech.phrases import Phrases
from antiphon.speech.references import Local, WyomingServer, parse_stt, parse_tts
from antiphon.speech.workers import Workers
from antiphon.weights.folder import locate


@dataclass(frozen=True, slots=True)
class Speech:
    """The engines of the settings, ready to be used."""

    recognizer: Recognizer
    synthesizer: Synthesizer | None
    workers: Workers


@dataclass(frozen=True, slots=True)
class Voice:
    """What gives every session a model of its own that listens and speaks."""

    speech: Speech
    usual_voice: str
    make_model: Callable[[], LiveModel]

    async def make_sample(self, text: str, voice: str | None, speed: float) -> bytes:
        """A short text as it would be spoken, at the wire's rate."""
        from antiphon.audio.resample import resample

        synthesizer = self.speech.synthesizer
        assert synthesizer is not None
        sounds = [sound async for sound in synthesizer.speak(text, voice=voice or self.usual_voice, speed=speed)]
        return resample(b"".join(sound.pcm for sound in sounds), synthesizer.output_hz, SPEECH_HZ)


@asynccontextmanager
async def open_speech(settings: Settings) -> AsyncIterator[Speech]:
    """Loads the engines of the settings, all at once. Raises `AntiphonError` if one cannot be had."""
    async with AsyncExitStack() as stack:
        workers = Workers(threads=_cores())
        stack.push_async_callback(workers.aclose)
        opening = (_open_recognizer(settings, workers), _open_synthesizer(settings, workers))
        # If one fails, the other is waited for all the same: left alone, it would go on without anybody to close it.
        recognizer, synthesizer = await asyncio.gather(*opening, return_exceptions=True)
        for engine in (recognizer, synthesizer):
            if engine is not None and not isinstance(engine, BaseException):
                stack.push_async_callback(engine.aclose)
        if isinstance(recognizer, BaseException):
            raise recognizer
        if isinstance(synthesizer, BaseException):
            raise synthesizer
        yield Speech(recognizer, synthesizer, workers)


@asynccontextmanager
async def open_voice(settings: Settings, model: TextModel, is_request: Callable[[str], bool]) -> AsyncIterator[Voice]:
    """`is_request` knows whether a text is a whole request. Raises `AntiphonError` if an engine cannot be had."""
    with needs_extra("local", "the voice"):
        from antiphon.audio.turn import TurnDetector
        from antiphon.audio.vad import Vad
        from antiphon.models.cascade.cascade import Cascade
        from antiphon.models.cascade.hearing import Hearing
        from antiphon.models.cascade.senses import Senses

    silero = locate(settings.models_dir, "silero-vad", "silero_vad.onnx")
    smart_turn = locate(settings.models_dir, "smart-turn", "smart-turn-v3.2-cpu.onnx")
    async with open_speech(settings) as speech:
        vad, detector = await asyncio.gather(
            asyncio.to_thread(Vad, silero), asyncio.to_thread(TurnDetector, smart_turn)
        )
        hearing = Hearing(vad)
        senses = Senses(
            hearing,
            speech.recognizer,
            detector,
            speech.workers,
            is_request,
            settings.speech.short_silence_ms,
            settings.speech.long_silence_ms,
        )
        usual_voice = settings.speech.voice
        try:
            yield Voice(speech, usual_voice, lambda: Cascade(senses, model, speech.synthesizer, usual_voice))
        finally:
            await hearing.aclose()


async def _open_recognizer(settings: Settings, workers: Workers) -> Recognizer:
    match parse_stt(settings.speech.stt):
        case Local():
            with needs_extra("local", settings.speech.stt):
                from antiphon.speech.engines.moonshine import MoonshineRecognizer
            moonshine = MoonshineRecognizer(settings.models_dir, workers)
            await asyncio.to_thread(moonshine.load)
            return moonshine
        case WyomingServer(host=host, port=port):
            with needs_extra("local", settings.speech.stt):
                from antiphon.speech.engines.wyoming import WyomingRecognizer
            remote = WyomingRecognizer(host, port)
            await remote.open()
            return remote
        case server:
            with needs_extra("openai", settings.speech.stt):
                from antiphon.speech.engines.openai import OpenAIRecognizer
            return OpenAIRecognizer(server.base_url, server.model, server.key(os.environ))


async def _open_synthesizer(settings: Settings, workers: Workers) -> Synthesizer | None:
    match parse_tts(settings.speech.tts):
        case None:
            return None
        case Local():
            with needs_extra("local", settings.speech.tts):
                from antiphon.speech.engines.piper import PiperSynthesizer
            piper = Phrases(PiperSynthesizer(settings.models_dir, workers))
            # This loads the voice too.
            await piper.warm([GREETING], voice=settings.speech.voice)
            return piper
        case WyomingServer(host=host, port=port):
            with needs_extra("local", settings.speech.tts):
                from antiphon.speech.engines.wyoming import WyomingSynthesizer
            remote = WyomingSynthesizer(host, port, settings.speech.voice)
            await remote.open()
            return Phrases(remote)
        case server:
            with needs_extra("openai", settings.speech.tts):
                from antiphon.speech.engines.openai import OpenAISynthesizer
            return Phrases(
                OpenAISynthesizer(server.base_url, server.model, server.key(os.environ), _chosen_voice(settings))
            )


def _chosen_voice(settings: Settings) -> str | None:
    """The default is one of Piper's, which others do not have, and refuse."""
    return settings.speech.voice if "speech.voice" in settings.given else None


def _cores() -> int:
    """Those that this process may use: a container is often given fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
