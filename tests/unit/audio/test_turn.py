from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.audio import AudioError
from antiphon.audio.inference import ModelFileError
from antiphon.audio.pcm import Signal, from_signal
from antiphon.audio.turn import CONTEXT_S, TurnDetector, choose_places, features
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES
from tests.unit.audio.conftest import Speaker, silence

SENTENCES = [
    "What time is it in Tokyo?",
    "Set a timer for ten minutes.",
    "How much is fifteen percent of eighty?",
    "Please remind me to call my mother tomorrow morning.",
    "I would like to know the weather in Paris.",
    "Who wrote the book about the whale?",
    "Turn off the light in the kitchen.",
    "What is the distance between Rome and Berlin?",
    "Remind me to water the plants on Friday.",
    "Explain how a diesel engine works.",
]


@pytest.fixture(scope="module")
def detector(models_dir: Path) -> TurnDetector:
    return TurnDetector(models_dir / "smart-turn" / "smart-turn-v3.2-cpu.onnx")


def turn(speech: Signal, part: float = 1.0) -> bytes:
    """The beginning of what was spoken, and the silence after it that the detector wants."""
    spoken = np.flatnonzero(np.abs(speech) > np.abs(speech).max() / 100)
    speech = speech[spoken[0] : spoken[-1]]
    return from_signal(np.concatenate([silence(0.2), speech[: round(part * len(speech))], silence(0.15)]))


def test_complete_sentences_are_distinguished_from_truncated_ones(detector: TurnDetector, speaker: Speaker) -> None:
    spoken = [speaker.say(text, height) for text in SENTENCES for height in (0.87, 1.15)]
    whole = np.array([detector.completeness(turn(speech)) for speech in spoken])
    cut = np.array([detector.completeness(turn(speech, 0.5)) for speech in spoken])
    # Single clips are chance, and a voice that is cut off has not hesitated as a person would: one in five passes.
    assert np.mean(whole >= 0.95) >= 0.8
    assert np.mean(cut >= 0.95) <= 0.3


def straightforward_features(signal: Signal) -> NDArray[np.float64]:
    """The recipe word by word, without a shortcut for the silence, and with other words for the mel scale."""
    padded = np.pad(signal.astype(np.float64), (8 * MICROPHONE_HZ - len(signal), 0))
    padded = np.pad((padded - padded.mean()) / np.sqrt(padded.var() + 1e-7), 200, mode="reflect")
    window = np.hanning(401)[:-1]
    power = np.stack(
        [np.abs(np.fft.rfft(padded[at : at + 400] * window)) ** 2 for at in range(0, 8 * MICROPHONE_HZ + 1, 160)]
    )

    def to_hz(mel: float) -> float:
        return float(mel * 200 / 3 if mel < 15 else 1_000 * 6.4 ** ((mel - 15) / 27))

    top = 15 + 27 * np.log(8) / np.log(6.4)
    edges = [to_hz(top * i / 81) for i in range(82)]
    bins = np.arange(201) * 40.0
    filters: list[Any] = []
    for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
        filters.append(np.interp(bins, [low, middle, high], [0, 2 / (high - low), 0]))
    loudness = np.log10(np.maximum(np.stack(filters) @ power.T, 1e-10))[:, :-1]
    picture: NDArray[np.float64] = (np.maximum(loudness, loudness.max() - 8) + 4) / 4
    return picture


@pytest.mark.parametrize("samples", [1, 361, 30_000, 127_799, 127_801, 128_000])
@pytest.mark.parametrize("count", [26, 452])
def test_the_last_frames_are_those_of_the_recipe(samples: int, count: int) -> None:
    signal = np.random.default_rng(samples).normal(0.01, 0.1, samples).astype(np.float32)
    assert np.abs(features(signal, count) - straightforward_features(signal)[:, -count:]).max() < 1e-4


def test_speech_has_the_features_of_the_recipe(speaker: Speaker) -> None:
    signal = speaker.say(SENTENCES[0])
    assert np.abs(features(signal, 452) - straightforward_features(signal)[:, -452:]).max() < 1e-4


@pytest.mark.parametrize("seconds", [0.0, 1.0, 3.3, 4.2])
def test_the_silence_before_a_turn_is_covered_by_few_positions(seconds: float) -> None:
    places, counts = choose_places(round(seconds * MICROPHONE_HZ))
    assert len(places) <= 50 * seconds + 15
    assert counts.sum() == 400
    assert (np.diff(places) > 0).all()
    # What was said, and a little before it, is there place for place.
    spoken = round(50 * seconds) + 4
    assert list(places[-spoken:]) == list(range(400 - spoken, 400))
    assert (counts[-spoken:] == 1).all()


def test_only_the_end_of_a_turn_counts(detector: TurnDetector, speaker: Speaker) -> None:
    long = turn(np.concatenate([speaker.say(text) for text in SENTENCES]))
    heard = round(CONTEXT_S * MICROPHONE_HZ)
    assert detector.completeness(long) == detector.completeness(long[-heard * SAMPLE_BYTES :])
    assert detector.completeness(long) != detector.completeness(long[-heard * SAMPLE_BYTES // 2 :])


def test_threads_do_not_disturb_each_other(detector: TurnDetector, speaker: Speaker) -> None:
    turns = [turn(speaker.say(text)) for text in SENTENCES[:4]]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(detector.completeness, turns)) == [detector.completeness(each) for each in turns]


@pytest.mark.parametrize("pcm", [b"", b"\1"])
def test_empty_audio_is_not_a_complete_turn(detector: TurnDetector, pcm: bytes) -> None:
    with pytest.raises(AudioError, match="no audio"):
        detector.completeness(pcm)


def test_audio_of_one_sample_gets_a_judgement(detector: TurnDetector) -> None:
    assert 0 <= detector.completeness(b"\1\0") <= 1


def test_a_missing_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        TurnDetector(tmp_path / "turn.onnx")
