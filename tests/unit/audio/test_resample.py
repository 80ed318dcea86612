import numpy as np
import pytest

from antiphon.audio import AudioError
from antiphon.audio.pcm import duration_ms
from antiphon.audio.resample import Resampler, resample

RATES = [(22_050, 16_000), (16_000, 22_050), (48_000, 16_000), (8_000, 16_000), (24_000, 22_050)]


def tone(hz: int, pitch_hz: int = 440, seconds: float = 1.0) -> bytes:
    wave = 8_000 * np.sin(2 * np.pi * pitch_hz * np.arange(round(hz * seconds)) / hz)
    return wave.astype(np.int16).tobytes()


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_a_tone_keeps_its_pitch_and_duration(from_hz: int, to_hz: int) -> None:
    made = resample(tone(from_hz), from_hz, to_hz)
    assert duration_ms(made, to_hz) == 1_000
    assert np.abs(np.fft.rfft(np.frombuffer(made, np.int16))).argmax() == 440


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_chunks_give_the_same_audio_as_the_whole(from_hz: int, to_hz: int) -> None:
    whole = tone(from_hz)
    resampler = Resampler(from_hz, to_hz)
    # 999 bytes: every second piece begins within a sample.
    pieces = [resampler.push(whole[at : at + 999], last=at + 999 >= len(whole)) for at in range(0, len(whole), 999)]
    joined, at_once = (np.frombuffer(pcm, np.int16) for pcm in (b"".join(pieces), resample(whole, from_hz, to_hz)))
    assert joined.tolist() == pytest.approx(at_once.tolist(), abs=2)


def test_tones_above_the_new_nyquist_frequency_are_removed() -> None:
    made = np.frombuffer(resample(tone(48_000, 12_000), 48_000, 16_000), np.int16)
    assert np.abs(made[100:-100]).max() < 10


def test_the_first_audio_comes_out_within_60_ms() -> None:
    resampler = Resampler(22_050, 16_000)
    assert resampler.push(tone(22_050, seconds=0.06)) != b""


def test_a_new_stream_begins_after_the_last_chunk() -> None:
    resampler = Resampler(22_050, 16_000)
    first, second = (
        np.frombuffer(resampler.push(pcm, last=True), np.int16) for pcm in (tone(22_050) + b"\1", tone(22_050))
    )
    # The dither goes on.
    assert second.tolist() == pytest.approx(first.tolist(), abs=2)


def test_the_same_rate_changes_nothing() -> None:
    assert resample(tone(16_000), 16_000, 16_000) == tone(16_000)


def test_empty_audio_stays_empty() -> None:
    assert resample(b"", 22_050, 16_000) == b""


@pytest.mark.parametrize(("from_hz", "to_hz"), [(0, 16_000), (16_000, 0), (-8_000, 16_000)])
def test_a_sample_rate_of_zero_is_refused(from_hz: int, to_hz: int) -> None:
    with pytest.raises(AudioError, match="greater than 0"):
        Resampler(from_hz, to_hz)
