"""Less noise and less silence in a recording, and clean ones left alone."""

import numpy as np
import pytest

from antiphon.audio.noise import (
    MAX_REDUCTION_DB,
    NOISY_BELOW_DB,
    levels_db,
    reduce_noise,
    speech_to_noise_db,
    trim,
)
from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ


def tone(seconds: float, hz: float = 440.0) -> Signal:
    """A tone that swells and fades four times a second, as syllables do."""
    at_s = np.arange(int(seconds * MICROPHONE_HZ)) / MICROPHONE_HZ
    swell = np.square(np.sin(np.pi * 4 * at_s))
    return (0.3 * swell * np.sin(2 * np.pi * hz * at_s)).astype(np.float32)


def silence(seconds: float) -> Signal:
    return np.zeros(int(seconds * MICROPHONE_HZ), np.float32)


def noise(signal: Signal, level: float) -> Signal:
    return np.random.default_rng(7).normal(0, level, len(signal)).astype(np.float32)


def with_noise(signal: Signal, level: float) -> Signal:
    return signal + noise(signal, level)


def power_db(signal: Signal) -> float:
    return 10 * float(np.log10(np.mean(np.square(signal))))


SPEECH = np.concatenate([silence(0.4), tone(2.0), silence(0.4)])


def test_a_good_microphone_is_not_noisy() -> None:
    assert speech_to_noise_db(with_noise(SPEECH, 8 / 32_768)) > NOISY_BELOW_DB


@pytest.mark.parametrize("level", [0.01, 0.03, 0.1])
def test_a_loud_room_is_noisy(level: float) -> None:
    assert speech_to_noise_db(with_noise(SPEECH, level)) < NOISY_BELOW_DB


def test_the_ratio_falls_as_the_noise_rises() -> None:
    ratios = [speech_to_noise_db(with_noise(SPEECH, level)) for level in (0.001, 0.01, 0.1)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > NOISY_BELOW_DB > ratios[-1]


def test_noise_between_words_becomes_weaker_by_the_agreed_amount() -> None:
    noisy = with_noise(SPEECH, 0.03)
    before = power_db(noisy[: MICROPHONE_HZ // 4])
    after = power_db(reduce_noise(noisy)[: MICROPHONE_HZ // 4])
    assert before - after == pytest.approx(MAX_REDUCTION_DB, abs=2)


def test_the_speech_keeps_its_level_and_its_place() -> None:
    noisy = with_noise(SPEECH, 0.03)
    reduced = reduce_noise(noisy)
    assert len(reduced) == len(noisy)
    middle = slice(MICROPHONE_HZ // 2, 2 * MICROPHONE_HZ)
    assert float(np.corrcoef(SPEECH[middle], reduced[middle])[0, 1]) > 0.97
    assert power_db(reduced[middle]) == pytest.approx(power_db(SPEECH[middle]), abs=1.5)


def test_the_result_is_nearer_to_the_speech_than_the_recording_was() -> None:
    noisy = with_noise(SPEECH, 0.03)
    assert power_db(reduce_noise(noisy) - SPEECH) < power_db(noisy - SPEECH) - 5


@pytest.mark.parametrize("length", [0, 1, 100, 1_023, 1_024, 1_025, 5_000])
def test_any_length_comes_back_as_long(length: int) -> None:
    assert len(reduce_noise(noise(silence(1.0), 0.1)[:length])) == length


@pytest.mark.parametrize("level", [8 / 32_768, 0.01, 0.03])
def test_long_silence_around_the_speech_is_left_out(level: float) -> None:
    spoken = tone(2.0)
    recording = with_noise(np.concatenate([silence(3.0), spoken, silence(4.0)]), level)
    kept_s = len(trim(recording)) / MICROPHONE_HZ
    assert 2.3 < kept_s < 2.8


def test_the_silence_around_a_turn_of_a_conversation_stays() -> None:
    turn = with_noise(np.concatenate([silence(0.3), tone(2.0), silence(0.9)]), 8 / 32_768)
    assert len(trim(turn)) == len(turn)


@pytest.mark.parametrize("signal", [silence(0.0), silence(0.01), silence(2.0), noise(silence(2.0), 0.1)])
def test_a_recording_without_speech_stays_whole(signal: Signal) -> None:
    assert len(trim(signal)) == len(signal)


def test_levels_are_those_of_each_20_ms() -> None:
    assert levels_db(np.full(MICROPHONE_HZ // 10, 0.1, np.float32)) == pytest.approx([-20.0] * 5, abs=0.01)
