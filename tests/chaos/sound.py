"""Speech as tones: every word has a frequency, so that whoever hears the sound knows the words, at any sample rate."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import numpy as np

from antiphon.audio.pcm import Samples, to_samples
from antiphon.models.base import TextModel
from antiphon.models.cascade.batched_vad import BatchedVad
from antiphon.models.cascade.cascade import Cascade, make_profile
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.completeness import Completeness
from antiphon.models.live import ModelFactory
from antiphon.protocol.limits import MICROPHONE_HZ, SPEECH_HZ
from antiphon.speech.base import Sound, Urgency, Voice
from antiphon.speech.workers import Workers
from tests.fakes.voice import (
    SILENCES,
    FakeTurnDetector,
    LoudnessVad,
    PerfectRecognizer,
    VirtualThreads,
    Vocabulary,
)

CHARACTER_MS: Final = 66
"""How long a word is spoken for each of its characters and the space after it: 15 a second, as people do."""
GAP_MS: Final = 40
LEAST_SHARE: Final = 0.7
"""How much of a word must be heard for it to be understood."""
LEVEL: Final = 12_000
AUDIBLE: Final = 3_000
FIRST_HZ: Final = 600
"""Above the tone of 440 Hz by which the simulators' own speech is known."""
STEP_HZ: Final = 10
_BLOCK_MS: Final = 5


class Tones(Vocabulary):
    """The words of one conversation. A word gets its frequency when it is first said."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def say(self, text: str) -> bytes:
        return self.encode(text, MICROPHONE_HZ)

    def read(self, pcm: bytes) -> str:
        return " ".join(self.decode(pcm, MICROPHONE_HZ))

    def encode(self, text: str, hz: int) -> bytes:
        gap = np.zeros(hz * GAP_MS // 1_000, np.int16)
        parts: list[Samples] = []
        for word in words_of(text):
            number = self._numbers.setdefault(word, len(self._numbers))
            places = np.arange(hz * duration_ms(word) // 1_000)
            wave = LEVEL * np.sin(2 * np.pi * (FIRST_HZ + STEP_HZ * number) / hz * places)
            parts += [wave.astype(np.int16), gap]
        return np.concatenate(parts).tobytes() if parts else b""

    def decode(self, pcm: bytes, hz: int) -> list[str]:
        """Returns the words of which the larger part is present."""
        block = hz * _BLOCK_MS // 1_000
        samples = to_samples(pcm)
        count = len(samples) // block
        if not count:
            return []
        loud = np.abs(samples[: count * block].astype(np.int32)).reshape(count, block).max(axis=1) > AUDIBLE
        edges = np.flatnonzero(np.diff(loud.astype(np.int8), prepend=0, append=0))
        named = list(self._numbers)
        said: list[str] = []
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            number = round((_frequency(samples[begin * block : end * block], hz) - FIRST_HZ) / STEP_HZ)
            is_known = 0 <= number < len(named)
            if is_known and (end - begin) * _BLOCK_MS >= LEAST_SHARE * duration_ms(named[number]):
                said.append(named[number])
        return said


def duration_ms(word: str) -> int:
    return CHARACTER_MS * (len(word) + 1) - GAP_MS


def words_of(text: str) -> list[str]:
    """Returns the words without what cannot be heard."""
    plain = "".join(each if each.isalnum() or each == "'" else " " for each in text.lower())
    return plain.split()


def _frequency(samples: Samples, hz: int) -> float:
    size = 1 << 16
    spectrum = np.abs(np.fft.rfft(samples.astype(np.float32) * np.hanning(len(samples)), size))
    return float(np.argmax(spectrum)) * hz / size


class ToneVoice:
    """Synthesizes a clause as one chunk, after a short delay."""

    name = "tones"
    output_hz = SPEECH_HZ
    voices: Sequence[Voice] = (Voice("joe", "Joe", "en-US"),)

    def __init__(self, tones: Tones, delay_s: float = 0.05) -> None:
        self._tones = tones
        self._delay_s = delay_s

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        await asyncio.sleep(self._delay_s)
        if pcm := self._tones.encode(text, SPEECH_HZ):
            yield Sound(pcm, 0)

    async def aclose(self) -> None:
        """There is nothing to close."""


def cascade_factory(tones: Tones, model: TextModel) -> ModelFactory:
    """A local voice that hears and speaks tones."""
    workers = Workers(threads=2, pool=VirtualThreads())
    engines = SharedEngines(
        BatchedVad(LoudnessVad(), VirtualThreads()),
        PerfectRecognizer(tones),
        FakeTurnDetector(),
        workers,
        lambda text: Completeness.COMPLETE,
        SILENCES,
    )
    voice = ToneVoice(tones)
    return ModelFactory(make_profile(model, voice), lambda: Cascade(engines, model, voice, "joe"))
