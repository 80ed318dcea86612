"""The voice of a process: the speech engines and models, loaded once for all its sessions.

Nothing heavy is imported before a voice is needed, so that a text-only server starts quickly.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final

from antiphon.config import Settings
from antiphon.config import Speech as SpeechSettings
from antiphon.models.base import Prompt, TextModel
from antiphon.models.completeness import Completeness
from antiphon.models.health import ModelHealth
from antiphon.models.live import LiveModel, ModelFactory
from antiphon.models.local_first import LocalFirstModel
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.base import NamePreferring, Recognizer, SpeechError, Synthesizer, needs_extra
from antiphon.speech.base import Voice as SpeechVoice
from antiphon.speech.measured import MeasuredSynthesizer, measure_recognizer
from antiphon.speech.references import Local, Reference, WyomingServer, needs_network, parse_stt, parse_tts
from antiphon.speech.spoken import speakable
from antiphon.speech.workers import Workers
from antiphon.speech.wrappers import CachingSynthesizer, UrgentOnlyRecognizer
from antiphon.telemetry.metrics import EngineStats
from antiphon.weights.folder import locate

NAMES_EVERY_S: Final = 300.0
READY: Final = "Ready."
"""What warms up the voice if there is no greeting."""


@dataclass(frozen=True, slots=True)
class Speech:
    """The engines of the settings, ready to be used."""

    recognizer: Recognizer
    synthesizer: Synthesizer | None
    workers: Workers
    stt: EngineStats = field(default_factory=EngineStats)
    """How the requests to the recogniser go."""
    tts: EngineStats = field(default_factory=EngineStats)


@dataclass(frozen=True, slots=True)
class Voice:
    """Makes a model that listens and speaks for each session."""

    factory: ModelFactory
    speech: Speech | None = None
    """The engines on this server; None if the model hears and speaks by itself."""
    usual_voice: str = ""

    @property
    def synthesizer(self) -> Synthesizer | None:
        return None if self.speech is None else self.speech.synthesizer

    @property
    def voices(self) -> Sequence[SpeechVoice]:
        """The voices that can be chosen, the default one first."""
        if self.synthesizer is not None:
            return self.synthesizer.voices
        # A provider's voices speak any language.
        return [SpeechVoice(name, name, "") for name in self.factory.profile.voices]

    async def synthesize(self, text: str, voice: str | None, speed: float) -> bytes:
        """Synthesizes a text at the protocol's sample rate; returns nothing if the text has nothing to speak."""
        from antiphon.audio.resample import resample

        synthesizer = self.synthesizer
        assert synthesizer is not None
        spoken = speakable(text)
        if not spoken:
            return b""
        sounds = [sound async for sound in synthesizer.speak(spoken, voice=voice or self.usual_voice, speed=speed)]
        return resample(b"".join(sound.pcm for sound in sounds), synthesizer.output_hz, SPEECH_HZ)


@asynccontextmanager
async def open_speech(settings: Settings) -> AsyncIterator[Speech]:
    """Loads the engines of the settings concurrently. Raises `AntiphonError` if one of them fails."""
    async with AsyncExitStack() as stack:
        workers = Workers(threads=_cores())
        stack.push_async_callback(workers.aclose)
        stt, tts = EngineStats(), EngineStats()
        opening = (_open_recognizer(settings, workers, stt), open_synthesizer(settings, workers, tts))
        # If one fails, the other is still awaited, so that it can be closed.
        recognizer, synthesizer = await asyncio.gather(*opening, return_exceptions=True)
        for engine in (recognizer, synthesizer):
            if engine is not None and not isinstance(engine, BaseException):
                stack.push_async_callback(engine.aclose)
        if isinstance(recognizer, BaseException):
            raise recognizer
        if isinstance(synthesizer, BaseException):
            raise synthesizer
        yield Speech(recognizer, synthesizer, workers, stt, tts)


@asynccontextmanager
async def open_voice(
    settings: Settings,
    model: TextModel,
    completeness: Callable[[str], Completeness],
    health: ModelHealth,
    names: Callable[[], Awaitable[Sequence[str]]] | None = None,
) -> AsyncIterator[Voice]:
    """Opens the voice. `completeness` judges how complete a request is, and `health` is that of the text model. `names`
    returns what the recogniser should expect besides `speech.words`, such as the names of devices.

    Raises `AntiphonError` if an engine fails to load.
    """
    with needs_extra("local", "the voice"):
        # The sample rate is changed with it, whatever engines are used.
        import soxr  # type: ignore[import-untyped] # noqa: F401

        from antiphon.audio.turn import TurnDetector
        from antiphon.audio.vad import Vad
        from antiphon.models.cascade.batched_vad import BatchedVad
        from antiphon.models.cascade.cascade import Cascade, make_profile
        from antiphon.models.cascade.end_of_turn import Silences
        from antiphon.models.cascade.shared_engines import SharedEngines

    silero = locate(settings.models_dir, "silero-vad", "silero_vad.onnx")
    smart_turn = locate(settings.models_dir, "smart-turn", "smart-turn-v3.2-cpu.onnx")
    async with open_speech(settings) as speech:
        vad, detector = await asyncio.gather(
            asyncio.to_thread(Vad, silero), asyncio.to_thread(TurnDetector, smart_turn)
        )
        batched_vad = BatchedVad(vad)
        detector_workers = Workers(threads=1, yielding=True)
        engines = SharedEngines(
            vad=batched_vad,
            recognizer=speech.recognizer,
            detector=detector,
            detector_workers=detector_workers,
            completeness=completeness,
            silences=Silences(*settings.speech.silences_ms),
        )
        usual_voice = settings.speech.voice
        when = settings.model.think_ahead
        may_prepare = _may_prepare(when, model)
        tts = parse_tts(settings.speech.tts)
        prepares_speech = tts is not None and _is_wanted(when, needs_network(tts))

        def make_model() -> LiveModel:
            return Cascade(
                engines,
                model,
                speech.synthesizer,
                usual_voice,
                may_prepare=may_prepare,
                prepares_speech=prepares_speech,
            )

        naming = asyncio.create_task(_keep_names(speech.recognizer, settings.speech.words, names))
        try:
            factory = ModelFactory(make_profile(model, speech.synthesizer, speech.recognizer.name), make_model, health)
            yield Voice(factory, speech, usual_voice)
        finally:
            naming.cancel()
            await asyncio.wait([naming])
            await batched_vad.aclose()
            await detector_workers.aclose()


async def _keep_names(
    recognizer: Recognizer, words: Sequence[str], names: Callable[[], Awaitable[Sequence[str]]] | None
) -> None:
    """Tells the recogniser which names to expect, again and again, since devices come and go."""
    known: Sequence[str] = ()
    while isinstance(recognizer, NamePreferring):
        found = [*words, *(await names() if names is not None else ())]
        if found != known:
            known = found
            await asyncio.to_thread(recognizer.prefer, found)
        await asyncio.sleep(NAMES_EVERY_S)


async def _open_recognizer(settings: Settings, workers: Workers, stats: EngineStats) -> Recognizer:
    reference = parse_stt(settings.speech.stt)
    recognizer = measure_recognizer(await _open_engine(reference, settings, workers), stats)
    return (
        recognizer
        if _is_wanted(settings.speech.interim_captions, needs_network(reference))
        else UrgentOnlyRecognizer(recognizer)
    )


async def _open_engine(reference: Reference, settings: Settings, workers: Workers) -> Recognizer:
    match reference:
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


async def open_synthesizer(
    settings: Settings, workers: Workers, stats: EngineStats | None = None
) -> Synthesizer | None:
    """Loads the engine that speaks; None if the settings want none. Its requests are counted in `stats`.

    What is cached is not counted.
    """

    def wrap(engine: Synthesizer) -> CachingSynthesizer:
        return CachingSynthesizer(MeasuredSynthesizer(engine, stats or EngineStats()))

    match parse_tts(settings.speech.tts):
        case None:
            return None
        case Local() as engine:
            local = wrap(_open_local_synthesizer(engine, settings, workers))
            where = f"its *.onnx and *.onnx.json must be in {settings.models_dir / settings.speech.voice}"
            ids = [each.id for each in local.voices]
            _check_voice(settings, local, ids, where if engine is Local.PIPER else "")
            # This also loads the voice.
            await local.warm([settings.assistant.greeting or READY], voice=settings.speech.voice)
            return local
        case WyomingServer(host=host, port=port):
            with needs_extra("local", settings.speech.tts):
                from antiphon.speech.engines.wyoming import OWN_VOICE, WyomingSynthesizer
            remote = WyomingSynthesizer(host, port, settings.speech.voice)
            await remote.open()
            _check_voice(settings, remote, [each.id for each in remote.voices if each is not OWN_VOICE])
            return wrap(remote)
        case server:
            with needs_extra("openai", settings.speech.tts):
                from antiphon.speech.engines.openai import OpenAISynthesizer
            return wrap(
                OpenAISynthesizer(server.base_url, server.model, server.key(os.environ), chosen_voice(settings))
            )


def _open_local_synthesizer(engine: Local, settings: Settings, workers: Workers) -> Synthesizer:
    match engine:
        case Local.PIPER:
            with needs_extra("piper", engine):
                from antiphon.speech.engines.piper import PiperSynthesizer
            return PiperSynthesizer(settings.models_dir, workers)
        case Local.KOKORO:
            with needs_extra("kokoro", engine):
                from antiphon.speech.engines.kokoro import KokoroSynthesizer
            return KokoroSynthesizer(settings.models_dir, workers)
        case _:
            with needs_extra("local", engine):
                from antiphon.speech.engines.hibari import HibariSynthesizer
            return HibariSynthesizer(workers)


def chosen_voice(settings: Settings) -> str | None:
    """Returns the configured voice. The default is a voice of hibari, which other engines refuse."""
    return settings.speech.voice if "speech.voice" in settings.given else None


def without_chosen_voice(settings: Settings) -> Settings:
    """Returns the settings without the configured voice, which is one of a provider's model and not of the engine."""
    given = {key: place for key, place in settings.given.items() if key != "speech.voice"}
    return replace(settings, speech=settings.speech.model_copy(update={"voice": SpeechSettings().voice}), given=given)


def _check_voice(settings: Settings, synthesizer: Synthesizer, ids: Sequence[str], where: str = "") -> None:
    """Raises `SpeechError` if the configured voice does not exist. Some servers do not list their voices."""
    chosen = chosen_voice(settings)
    if chosen is None or not ids or chosen in ids:
        return
    nearest = get_close_matches(chosen, ids, n=1, cutoff=0.0)[0]
    told = f'{synthesizer.name} has no voice "{chosen}", which speech.voice names. The nearest is "{nearest}"'
    raise SpeechError(f"{told}; {where}." if where else f"{told}.")


def _may_prepare(when: str, model: TextModel) -> Callable[[Prompt], bool]:
    """Decides which answers are prepared. Those of the offline assistant cost nothing, whatever the model costs."""
    if when == "auto" and isinstance(model, LocalFirstModel) and model.profile.needs_network:
        return model.answers_locally
    is_wanted = _is_wanted(when, model.profile.needs_network)
    return lambda prompt: is_wanted


def _is_wanted(when: str, needs_network: bool) -> bool:
    """Decides about speculative work: "auto" allows it only where it costs nothing."""
    return when == "always" or (when == "auto" and not needs_network)


def _cores() -> int:
    """Counts the cores that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
