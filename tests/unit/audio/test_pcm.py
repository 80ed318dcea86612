import numpy as np
import pytest

from antiphon.audio.pcm import SILENCE_DBFS, duration_ms, from_signal, level_dbfs, to_samples, to_signal


def test_every_sample_survives_the_round_trip() -> None:
    pcm = np.arange(-32_768, 32_768).astype(np.int16).tobytes()
    assert from_signal(to_signal(pcm)) == pcm


def test_a_signal_lies_between_minus_one_and_one() -> None:
    signal = to_signal(np.array([-32_768, 0, 32_767], np.int16))
    assert signal.tolist() == pytest.approx([-1, 0, 1], abs=1e-4)


def test_values_out_of_range_are_clipped_and_do_not_wrap_around() -> None:
    clipped = np.frombuffer(from_signal(np.array([-3.0, 1.0, 3.0], np.float32)), np.int16)
    assert clipped.tolist() == [-32_768, 32_767, 32_767]


def test_half_a_sample_at_the_end_is_left_out() -> None:
    assert to_samples(b"\1\0\2").tolist() == [1]


def test_a_second_is_a_thousand_milliseconds() -> None:
    assert duration_ms(bytes(2 * 22_050), 22_050) == 1_000


def test_a_full_square_wave_has_a_level_of_zero_and_half_of_it_six_less() -> None:
    square = np.tile(np.array([-32_768, 32_767], np.int16), 100)
    assert level_dbfs(square) == pytest.approx(0, abs=0.01)
    assert level_dbfs((square // 2).tobytes()) == pytest.approx(-6.02, abs=0.01)


@pytest.mark.parametrize("pcm", [b"", b"\0", bytes(1_000)])
def test_silence_and_empty_audio_have_a_comparable_level(pcm: bytes) -> None:
    assert level_dbfs(pcm) == SILENCE_DBFS
