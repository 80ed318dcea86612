"""Wrappers that measure any speech engine: how long its requests take, and how they fail."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Final

from antiphon.speech.base import (
    NamePreferring,
    Recognizer,
    Sound,
    SpeechBusy,
    SpeechError,
    SpeechUnreachable,
    Synthesizer,
    Urgency,
)
from antiphon.speech.wrappers import WrappedRecognizer, WrappedSynthesizer
from antiphon.telemetry.metrics import EngineStats

UNEXPECTED: Final = "unexpected"
KINDS: Final = (SpeechError.code, SpeechUnreachable.code, SpeechBusy.code, UNEXPECTED)
"""The kinds of errors, as the metrics have them."""


def measure_recognizer(recognizer: Recognizer, stats: EngineStats) -> Recognizer:
    """Wraps a recogniser. It can be biased if the one inside can."""
    stats.begin(recognizer.name, KINDS)
    if isinstance(recognizer, NamePreferring):
        return _MeasuredNamePreferring(recognizer, recognizer, stats)
    return MeasuredRecognizer(recognizer, stats)


class MeasuredRecognizer(WrappedRecognizer):
    def __init__(self, recognizer: Recognizer, stats: EngineStats) -> None:
        super().__init__(recognizer)
        self._stats = stats

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        started_s = time.perf_counter()
        try:
            text = await self._recognizer.recognize(pcm, urgency)
        except Exception as error:
            _note_failure(self._stats, error, urgency)
            raise
        self._stats.note_success((time.perf_counter() - started_s) * 1_000)
        return text


class _MeasuredNamePreferring(MeasuredRecognizer):
    def __init__(self, recognizer: Recognizer, names: NamePreferring, stats: EngineStats) -> None:
        super().__init__(recognizer, stats)
        self._names = names

    def prefer(self, phrases: Iterable[str]) -> None:
        self._names.prefer(phrases)

    def preferring(self, phrases: Iterable[str]) -> Recognizer:
        return MeasuredRecognizer(self._names.preferring(phrases), self._stats)


class MeasuredSynthesizer(WrappedSynthesizer):
    def __init__(self, synthesizer: Synthesizer, stats: EngineStats) -> None:
        super().__init__(synthesizer)
        self._stats = stats
        stats.begin(synthesizer.name, KINDS)

    async def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float = 1.0,
        urgency: Urgency = Urgency.NOW,
        goes_on: bool = False,
    ) -> AsyncIterator[Sound]:
        sounds = self._synthesizer.speak(text, voice=voice, speed=speed, urgency=urgency, goes_on=goes_on)
        # Only the time in the engine counts: the reader may wait until the client has played what it has.
        spent_s, has_begun, resumed_s = 0.0, False, time.perf_counter()
        try:
            async for sound in sounds:
                spent_s += time.perf_counter() - resumed_s
                if sound.pcm and not has_begun:
                    has_begun = True
                    self._stats.first_audio.add(spent_s * 1_000, self._stats.engine)
                yield sound
                resumed_s = time.perf_counter()
        except Exception as error:
            _note_failure(self._stats, error, urgency)
            raise
        finally:
            if isinstance(sounds, AsyncGenerator):
                await sounds.aclose()
        self._stats.note_success((spent_s + time.perf_counter() - resumed_s) * 1_000)


def _note_failure(stats: EngineStats, error: Exception, urgency: Urgency) -> None:
    """An engine without time for optional work has not failed."""
    if not (isinstance(error, SpeechBusy) and urgency is Urgency.IDLE):
        stats.note_failure(error.code if isinstance(error, SpeechError) else UNEXPECTED)
