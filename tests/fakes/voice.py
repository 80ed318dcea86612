"""Speech engines without models: the audio itself says whether it is speech, and which words are in it.

Fakes are for timing and faults. What real engines make of real speech is tested with them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, Final

import numpy as np

from antiphon.audio.pcm import Samples, to_samples
from antiphon.audio.vad import VadStream
from antiphon.models.base import TextModel
from antiphon.models.cascade.batched_vad import BatchedVad
from antiphon.models.cascade.cascade import Cascade, make_profile
from antiphon.models.cascade.end_of_turn import Silences
from antiphon.models.cascade.endpointer import SPEECH, STILL_SPEECH
from antiphon.models.cascade.shared_engines import SharedEngines
from antiphon.models.completeness import Completeness
from antiphon.models.live import (
    InputTranscript,
    LiveContext,
    LiveEvent,
    LiveModel,
    ModelFactory,
    SpeechStarted,
    TurnStarted,
)
from antiphon.speech.base import Sound, SpeechBusy, Synthesizer, Urgency, Voice
from antiphon.speech.workers import Workers
from antiphon.tools.spec import Mode
from antiphon.transcript import Entry, Message, Transcript
from tests.fakes.paced import Listener

SILENCES: Final = Silences(short_ms=300, middle_ms=600, long_ms=900, unfinished_ms=2_000)

HZ: Final = 16_000
PUSH_MS: Final = 20
WORD_MS: Final = 256
GAP_MS: Final = 64
LEAD_MS: Final = 128
"""A first word with less audio than this before it is lost, as with real recognizers."""

CERTAIN: Final = 10_000
"""A peak of this level is certainly speech; half of it has a probability of a half."""
WORD_PEAK: Final = 9_000
WORD_STEP: Final = 8
GAP_PEAK: Final = 4_000
"""The level between words: still speech, but a good place to split."""

TONE_HZ: Final = 22_050
TONE_MS_PER_CHARACTER: Final = 60


class Vocabulary:
    """Encodes words as audio and decodes them: the peak of a word is its number."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def say(self, text: str) -> bytes:
        """Encodes a text, at about 320 ms per word."""
        pcm = b""
        for word in text.split():
            if word not in self._words:
                self._words.append(word)
            pcm += wave(WORD_MS, WORD_PEAK + WORD_STEP * self._words.index(word)) + wave(GAP_MS, GAP_PEAK)
        return pcm[: -len(wave(GAP_MS, GAP_PEAK))]

    def read(self, pcm: bytes) -> str:
        """Decodes the words of which the larger part is present."""
        peaks = np.abs(to_samples(pcm).astype(np.int32))
        edges = np.flatnonzero(np.diff(peaks, prepend=-1, append=-1))
        said: list[str] = []
        for begin, end in pairwise(edges):
            number = (peaks[begin] - WORD_PEAK) // WORD_STEP
            is_whole = end - begin > WORD_MS * HZ // 2_000 and begin >= LEAD_MS * HZ // 1_000
            if is_whole and 0 <= number < len(self._words):
                said.append(self._words[number])
        return " ".join(said)


def wave(ms: int, peak: int, half_period: int = 11) -> bytes:
    """A square one. With the usual period it has the middle tones of an open mouth."""
    places = np.arange(ms * HZ // 1_000) // half_period
    return np.where(places % 2, -peak, peak).astype(np.int16).tobytes()


def hum(ms: int) -> bytes:
    """Certainly a voice, but with low frequencies only."""
    samples: Samples = (CERTAIN * np.sin(2 * np.pi * 150 / HZ * np.arange(ms * HZ // 1_000))).astype(np.int16)
    return samples.tobytes()


class LoudnessVad:
    """A VAD to which loud audio is speech."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.fails = False
        self.highest = 1.0
        """The highest probability that it gives, as for a noise."""
        self.lag_frames = 0
        """How long it still reports speech after the end of speech, as real ones do."""
        self._lagging: dict[VadStream, int] = {}

    def stream(self) -> VadStream:
        return VadStream()

    def run(self, batch: Sequence[tuple[VadStream, bytes | Samples]]) -> list[float]:
        self.batches.append(len(batch))
        if self.fails:
            raise RuntimeError("no VAD")
        return [self._hear(stream, frame) for stream, frame in batch]

    def _hear(self, stream: VadStream, frame: bytes | Samples) -> float:
        likely = min(self.highest, int(np.abs(to_samples(frame).astype(np.int32)).max()) / CERTAIN)
        left = self._lagging.get(stream, 0)
        self._lagging[stream] = self.lag_frames if likely >= SPEECH else max(0, left - 1)
        return max(likely, STILL_SPEECH) if left else likely


class VirtualThreads(Executor):
    """Runs jobs on the event loop instead of threads: a job is done when its time is over."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        asyncio.get_running_loop().call_later(self.delay_s, work)
        return future


class PerfectRecognizer:
    """Recognizes every word, after a delay."""

    name = "perfect"

    def __init__(self, words: Vocabulary, delay_s: float = 0.08) -> None:
        self._words = words
        self.delay_s = delay_s
        self.error: Exception | None = None
        """The error that it raises while it is set."""
        self.heard: list[tuple[str, Urgency]] = []
        self.given_up = 0
        self.tells_interim = True

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if urgency is Urgency.IDLE and not self.tells_interim:
            raise SpeechBusy("There is no thread to spare.")
        text = self._words.read(pcm)
        self.heard.append((text, urgency))
        try:
            await asyncio.sleep(self.delay_s)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.error is not None:
            raise self.error
        return text

    async def aclose(self) -> None:
        """There is nothing to close."""

    def asked(self, urgency: Urgency) -> list[str]:
        return [text for text, each in self.heard if each is urgency]


class Tones:
    """Synthesizes 60 ms of audio per character, in chunks."""

    name = "tones"
    output_hz = TONE_HZ
    voices: Sequence[Voice] = (Voice("joe", "Joe", "en-US"), Voice("anna", "Anna", "en-US"))

    def __init__(self, piece_ms: int = 600, delay_s: float = 0.05, *, tells_length: bool = True) -> None:
        self.piece_ms = piece_ms
        self.delay_s = delay_s
        """Of each piece."""
        self.tells_length = tells_length
        self.error: Exception | None = None
        self.fails_at = "\0"
        """A text that contains this breaks off after its first chunk."""
        self.asked: list[tuple[str, str | None, float]] = []
        self.went_on: list[bool] = []
        """For each requested text, whether it continued an answer."""
        self.urgencies: list[Urgency] = []
        self.made = 0
        """Pieces of sound."""
        self.open = 0

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        self.asked.append((text, voice, speed))
        self.went_on.append(goes_on)
        self.urgencies.append(urgency)
        left_ms = length_ms(text, speed)
        self.open += 1
        try:
            while left_ms > 0:
                await asyncio.sleep(self.delay_s)
                ms = min(self.piece_ms, left_ms)
                left_ms -= ms
                self.made += 1
                yield Sound(bytes(2 * (TONE_HZ * ms // 1_000)), left_ms if self.tells_length else None)
                if self.error is not None and self.fails_at in text:
                    raise self.error
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        """There is nothing to close."""


def length_ms(text: str, speed: float = 1.0) -> int:
    return round(len(text) * TONE_MS_PER_CHARACTER / speed)


class FakeTurnDetector:
    """A turn detector that returns a fixed probability."""

    def __init__(self) -> None:
        self.says = 0.0
        self.asked: list[bytes] = []

    def completeness(self, pcm: bytes) -> float:
        self.asked.append(pcm)
        return self.says


class FakeEngines:
    """The fake engines of a cascade, which a test can inspect and change."""

    def __init__(self) -> None:
        self.words = Vocabulary()
        self.vad = LoudnessVad()
        self.recognizer = PerfectRecognizer(self.words)
        self.detector = FakeTurnDetector()
        self.threads = VirtualThreads(delay_s=0.07)
        self.workers = Workers(threads=2, pool=self.threads)
        self.batched_vad = BatchedVad(self.vad, VirtualThreads())
        self.known: dict[str, Completeness] = {}
        """The completeness of texts according to the grammar."""
        self.engines = SharedEngines(
            self.batched_vad,
            self.recognizer,
            self.detector,
            self.workers,
            lambda text: self.known.get(text, Completeness.UNKNOWN),
            SILENCES,
        )

    def cascade(self, model: TextModel, synthesizer: Synthesizer | None, *, prepares_answers: bool = True) -> Cascade:
        return Cascade(self.engines, model, synthesizer, "joe", may_prepare=lambda prompt: prepares_answers)

    def factory(self, model: TextModel, synthesizer: Synthesizer | None) -> ModelFactory:
        return ModelFactory(make_profile(model, synthesizer), lambda: self.cascade(model, synthesizer))


class Caller(Listener):
    """A listener with a microphone."""

    def __init__(
        self, model: LiveModel, say: Callable[[str], bytes], transcript: Transcript, *, answers: bool = True
    ) -> None:
        self.at_s: list[float] = []
        """The time of each event."""
        self.playing = False
        self.sent_s = 0.0
        """How much audio was sent."""
        self._say = say
        super().__init__(model, transcript, answers=answers)

    def take(self, event: LiveEvent) -> None:
        if not isinstance(event, SpeechStarted):
            self.at_s.append(asyncio.get_running_loop().time())
        super().take(event)

    def answer(self, final: InputTranscript) -> None:
        """Requests the answer to a final transcript. Subclasses may do so later."""
        self.model.respond(final.turn, final.text)

    @property
    def started(self) -> list[TurnStarted]:
        return [event for event in self.events if isinstance(event, TurnStarted)]

    @property
    def heard(self) -> list[str]:
        """The texts of the turns that were heard."""
        return [final.text for final in self.finals]

    @property
    def finals(self) -> list[InputTranscript]:
        return [event for event in self.events if isinstance(event, InputTranscript) and event.is_final]

    @property
    def interims(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, InputTranscript) and not event.is_final]

    def when(self, kind: type[LiveEvent], place: int = 0) -> float:
        """The time of the first event of this type, or of a later one."""
        return [at_s for event, at_s in zip(self.events, self.at_s, strict=True) if isinstance(event, kind)][place]

    async def speak(self, text: str) -> float:
        """Speaks a text in real time, and returns the time at which it ended."""
        return await self.sound(self._say(text))

    async def be_silent(self, ms: int) -> float:
        return await self.sound(bytes(2 * HZ * ms // 1_000))

    async def sound(self, pcm: bytes) -> float:
        """Sends audio at the pace of a microphone."""
        size = 2 * HZ * PUSH_MS // 1_000
        for at in range(0, len(pcm), size):
            self.model.send_audio(pcm[at : at + size], playing=self.playing)
            self.sent_s += PUSH_MS / 1_000
            await asyncio.sleep(PUSH_MS / 1_000)
        return asyncio.get_running_loop().time()


@asynccontextmanager
async def calling(
    model: LiveModel, say: Callable[[str], bytes], *history: Message, answers: bool = True
) -> AsyncIterator[Caller]:
    transcript = Transcript(Entry(f"before-{place}", message) for place, message in enumerate(history))
    await model.connect(LiveContext("You are a helpful assistant.", transcript, history, (), Mode.VOICE))
    caller = Caller(model, say, transcript, answers=answers)
    try:
        yield caller
    finally:
        await model.close()
        await caller.reading
