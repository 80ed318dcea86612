"""Where a sound stops, by its loudness."""

import numpy as np
import pytest

from antiphon.audio.pcm import FRAME_BYTES, FRAME_SAMPLES, Samples
from antiphon.audio.silence import SILENCE_DROP_DB, SilenceDetector


def tone(level_db: float) -> bytes:
    """A frame so much quieter than full scale."""
    wave = np.sin(2 * np.pi * 250 / 16_000 * np.arange(FRAME_SAMPLES))
    samples: Samples = (32_000 * 10 ** (level_db / 20) * wave).astype(np.int16)
    return samples.tobytes()


def test_the_first_much_quieter_frame_counts_as_silence() -> None:
    detector = SilenceDetector()
    assert not detector.is_silent(tone(-10))
    assert detector.is_silent(tone(-10 - SILENCE_DROP_DB - 2))


def test_a_slightly_softer_frame_is_not_silence() -> None:
    detector = SilenceDetector()
    heard = [detector.is_silent(tone(level)) for level in (-10, -25, -40, -10, -40)]
    assert heard == [False] * 5


def test_a_constantly_quiet_room_does_not_fall_silent() -> None:
    detector = SilenceDetector()
    assert not any(detector.is_silent(tone(-70)) for _ in range(50))
    assert not SilenceDetector().is_silent(bytes(FRAME_BYTES))


def test_the_threshold_follows_the_level_of_the_voice() -> None:
    detector = SilenceDetector()
    assert not detector.is_silent(tone(-45))
    assert not detector.is_silent(tone(-75))
    assert detector.is_silent(bytes(FRAME_BYTES))


@pytest.mark.parametrize(("seconds", "is_silent_at_the_end"), [(0.3, True), (3, False)])
def test_soft_speech_after_a_shout_counts_as_speech_again_after_a_while(
    seconds: float, is_silent_at_the_end: bool
) -> None:
    detector = SilenceDetector()
    detector.is_silent(tone(0))
    heard = [detector.is_silent(tone(-46)) for _ in range(round(seconds / 0.032))]
    assert heard[-1] is is_silent_at_the_end
