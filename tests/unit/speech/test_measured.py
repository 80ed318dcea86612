"""Speech engines are measured, and what they can do stays the same."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from antiphon.speech.base import (
    NamePreferring,
    Recognizer,
    Sound,
    SpeechBusy,
    SpeechError,
    SpeechUnreachable,
    Urgency,
    Voice,
)
from antiphon.speech.measured import MeasuredSynthesizer, measure_recognizer
from antiphon.telemetry.metrics import EngineCollector, EngineStats


class Ear:
    name = "ear"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.closed = False

    async def recognize(self, pcm: bytes, urgency: Urgency = Urgency.NOW) -> str:
        if self.error is not None:
            raise self.error
        return "words"

    async def aclose(self) -> None:
        self.closed = True


class BiasedEar(Ear):
    preferred: Sequence[str] = ()

    def prefer(self, phrases: Iterable[str]) -> None:
        self.preferred = list(phrases)

    def preferring(self, phrases: Iterable[str]) -> Recognizer:
        return Ear()


class Mouth:
    name = "mouth"
    output_hz = 22_050
    voices: Sequence[Voice] = ()

    def __init__(self, *sounds: Sound | Exception) -> None:
        self.sounds = sounds
        self.closed = False

    async def speak(self, text: str, **rest: Any) -> AsyncIterator[Sound]:
        try:
            for sound in self.sounds:
                if isinstance(sound, Exception):
                    raise sound
                yield sound
        finally:
            self.closed = True

    async def aclose(self) -> None: ...


PIECE = Sound(b"\0\0", 10)


def counted(stats: EngineStats) -> int:
    return sum(sum(each.buckets) for each in stats.durations.all.values())


async def test_a_recognition_is_counted() -> None:
    stats = EngineStats()
    measured = measure_recognizer(Ear(), stats)
    assert await measured.recognize(b"") == "words"
    assert (counted(stats), stats.engine, measured.name) == (1, "ear", "ear")


@pytest.mark.parametrize(
    ("error", "urgency", "kind"),
    [
        (SpeechError("broken"), Urgency.NOW, "speech"),
        (SpeechUnreachable("gone"), Urgency.SOON, "speech_unreachable"),
        (SpeechBusy("busy"), Urgency.NOW, "busy"),
        (ValueError("odd"), Urgency.NOW, "unexpected"),
        (SpeechBusy("no time for optional work"), Urgency.IDLE, None),
    ],
)
async def test_a_failed_recognition_is_counted_by_its_kind(
    error: Exception, urgency: Urgency, kind: str | None
) -> None:
    stats = EngineStats()
    with pytest.raises(type(error)):
        await measure_recognizer(Ear(error), stats).recognize(b"", urgency)
    assert {found: count for (_, found), count in stats.errors.items() if count} == ({kind: 1} if kind else {})
    assert stats.last_failed is (kind is not None)


async def test_only_a_recogniser_that_can_be_biased_still_can() -> None:
    stats, biased = EngineStats(), BiasedEar()
    assert not isinstance(measure_recognizer(Ear(), stats), NamePreferring)
    measured = measure_recognizer(biased, stats)
    assert isinstance(measured, NamePreferring)
    measured.prefer(["Roomba"])
    assert biased.preferred == ["Roomba"]
    await measured.preferring(["Ilse"]).recognize(b"")
    assert counted(stats) == 1


async def test_speech_is_counted_with_its_first_audio() -> None:
    stats = EngineStats()
    measured = MeasuredSynthesizer(Mouth(PIECE, PIECE), stats)
    assert [sound async for sound in measured.speak("Hello.")] == [PIECE, PIECE]
    assert counted(stats) == 1
    assert sum(stats.first_audio.all["mouth",].buckets) == 1


async def test_a_reader_that_stops_abandons_the_speech_without_an_error() -> None:
    stats, mouth = EngineStats(), Mouth(PIECE, PIECE)
    async with aclosing(cast(Any, MeasuredSynthesizer(mouth, stats).speak("Hello."))) as sounds:
        async for _ in sounds:
            break
    assert mouth.closed
    assert (counted(stats), stats.last_failed) == (0, False)


async def test_speech_that_fails_is_counted() -> None:
    stats = EngineStats()
    with pytest.raises(SpeechError):
        async for _ in MeasuredSynthesizer(Mouth(PIECE, SpeechError("broken")), stats).speak("Hello."):
            pass
    assert stats.errors["mouth", "speech"] == 1
    assert stats.last_failed


def test_prometheus_lists_every_kind_of_error_from_the_start() -> None:
    stt = EngineStats()
    measure_recognizer(Ear(), stt)
    registry = CollectorRegistry()
    registry.register(EngineCollector(stt, None))
    exported = generate_latest(registry).decode()
    assert 'antiphon_stt_errors_total{engine="ear",kind="speech_unreachable"} 0.0' in exported
