"""What becomes of an answer when somebody makes a sound over it: the cascade itself, with its real VAD and recogniser.

The sounds come in real time. The client is a simple one: it plays the answer, stops while it is told to hold, and its
microphone hears the loudspeaker in some of the trials.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from antiphon.audio.pcm import Signal, from_signal
from antiphon.audio.resample import resample
from antiphon.audio.turn import TurnDetector
from antiphon.audio.vad import Vad
from antiphon.config import Settings
from antiphon.models.cascade.batched_vad import BatchedVad
from antiphon.models.cascade.cascade import Cascade
from antiphon.models.cascade.end_of_turn import Silences
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.completeness import Completeness
from antiphon.models.live import Held, InputTranscript, Interrupted, LiveContext, OutputAudio, Resumed
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ
from antiphon.speech.base import Sound, Urgency, Voice
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from antiphon.tools.spec import Mode
from antiphon.transcript import Transcript
from antiphon.weights.folder import locate
from tests.fakes.scripted import ScriptedModel
from tests.unit.audio.conftest import at_level, silence

PUSH: Final = MICROPHONE_HZ // 50
BEFORE_S: Final = 1.0
AFTER_S: Final = 2.0
ANSWER_S: Final = 12.0
TEXT: Final = "Once upon a time there was a king, who had three daughters, and none of them wanted to live in a castle."
THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class Trial:
    kind: str
    voice: str
    text: str
    sound: Signal
    dbfs: float
    began_ms: float
    """Where the first sound begins in it."""
    over: bool = True
    """Whether an answer is playing."""
    echo: Signal | None = None
    """What the microphone hears of the answer, if it hears it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    trial: Trial
    held_ms: float | None
    """The time from the beginning of the sound until the answer was held."""
    is_resumed: bool
    is_interrupted: bool
    heard: tuple[str, ...]
    """The turns that it was taken for."""

    @property
    def goes_on(self) -> bool:
        return not self.is_interrupted


class Recorded:
    """A synthesizer that plays a recording, whatever the text."""

    name = "recorded"
    output_hz = SPEECH_HZ
    voices: Sequence[Voice] = ()

    def __init__(self, answer: Signal) -> None:
        self._pcm = resample(from_signal(answer), MICROPHONE_HZ, SPEECH_HZ)

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        yield Sound(self._pcm, 0)

    async def aclose(self) -> None:
        """There is nothing to close."""


class _Client:
    """Plays the answer, and notes what it is told."""

    def __init__(self, cascade: Cascade) -> None:
        self.held_at: int | None = None
        self.sent = 0
        """Samples of the microphone."""
        self.played = 0
        """Samples of the answer, at the microphone's rate."""
        self.is_playing = False
        self.is_held = False
        self.is_resumed = self.is_interrupted = False
        self.heard: list[str] = []
        self._cascade = cascade

    async def read(self) -> None:
        async for event in self._cascade.events():
            match event:
                case OutputAudio():
                    self.is_playing = True
                case Held():
                    self.held_at = self.sent if self.held_at is None else self.held_at
                    self.is_held = True
                case Resumed():
                    self.is_resumed, self.is_held = True, False
                case Interrupted():
                    self.is_interrupted, self.is_held, self.is_playing = True, False, False
                case InputTranscript(is_final=True, text=text):
                    self.heard.append(text)

    async def send(self, sound: Signal, echo: Signal | None) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for at in range(0, len(sound) - PUSH, PUSH):
            await asyncio.sleep(max(0.0, began_s + at / MICROPHONE_HZ - loop.time()))
            piece, plays = sound[at : at + PUSH], self.is_playing and not self.is_held
            if plays:
                if echo is not None:
                    piece = piece + np.resize(echo[self.played : self.played + PUSH], PUSH)
                self.played += PUSH
            self.sent += PUSH
            self._cascade.send_audio(from_signal(piece), playing=plays)
            # The time until the answer is held is counted in audio, so that a busy machine does not lengthen it.
            await self._is_processed()

    async def _is_processed(self) -> None:
        recognizer, processed = self._cascade._recognizer, asyncio.Event()
        assert recognizer is not None
        recognizer._stream.when_idle(processed.set)
        await processed.wait()
        await asyncio.sleep(0)


async def try_one(engines: SharedEngines, trial: Trial, answer: Signal) -> Outcome:
    cascade = Cascade(engines, ScriptedModel([TEXT] * 4), Recorded(answer))
    await cascade.connect(LiveContext("", Transcript(), (), (), Mode.VOICE))
    client = _Client(cascade)
    reading = asyncio.create_task(client.read())
    noise = np.random.default_rng(len(trial.sound)).normal(0, 1e-4, 1 << 19)
    try:
        if trial.over:
            cascade.respond("asked", "Tell me a story.")
            await asyncio.sleep(0.1)
        sound = np.concatenate([silence(BEFORE_S), at_level(trial.sound, trial.dbfs), silence(AFTER_S)])
        await client.send((sound + noise[: len(sound)]).astype(np.float32), trial.echo)
    finally:
        await cascade.close()
        await reading
    held_ms = None
    if client.held_at is not None:
        held_ms = client.held_at * 1_000 / MICROPHONE_HZ - 1_000 * BEFORE_S - trial.began_ms
    return Outcome(trial, held_ms, client.is_resumed, client.is_interrupted, tuple(client.heard))


async def try_all(settings: Settings, trials: Sequence[Trial], answer: Signal, at_once: int) -> list[Outcome]:
    turn = asyncio.Semaphore(at_once)
    async with _open(settings) as engines:

        async def wait_and_try(trial: Trial) -> Outcome:
            async with turn:
                return await try_one(engines, trial, answer)

        return await asyncio.gather(*map(wait_and_try, trials))


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[SharedEngines]:
    models_dir: Path = settings.models_dir
    workers = Workers(THREADS)
    recognizer = MoonshineRecognizer(models_dir, workers)
    recognizer.load()
    vad = BatchedVad(Vad(locate(models_dir, "silero-vad", "silero_vad.onnx")))
    detector = TurnDetector(locate(models_dir, "smart-turn", "smart-turn-v3.2-cpu.onnx"))
    silences = Silences(*settings.speech.silences_ms)
    try:
        yield SharedEngines(vad, recognizer, detector, workers, lambda text: Completeness.UNKNOWN, silences)
    finally:
        await vad.aclose()
        await workers.aclose()
