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


def test_it_is_silent_at_the_end_with_the_first_frame_that_is_much_quieter() -> None:
    detector = SilenceDetector()
    assert not detector.is_silent(tone(-10))
    assert detector.is_silent(tone(-10 - SILENCE_DROP_DB - 2))


def test_what_is_only_softer_is_heard() -> None:
    detector = SilenceDetector()
    heard = [detector.is_silent(tone(level)) for level in (-10, -25, -40, -10, -40)]
    assert heard == [False] * 5


def test_a_quiet_room_has_not_fallen_silent() -> None:
    detector = SilenceDetector()
    assert not any(detector.is_silent(tone(-70)) for _ in range(50))
    assert not SilenceDetector().is_silent(bytes(FRAME_BYTES))


def test_it_goes_by_the_voice_not_by_a_fixed_level() -> None:
    detector = SilenceDetector()
    assert not detector.is_silent(tone(-45))
    assert not detector.is_silent(tone(-75))
    assert detector.is_silent(bytes(FRAME_BYTES))


@pytest.mark.parametrize(("seconds", "is_silent_at_the_end"), [(0.3, True), (3, False)])
def test_who_speaks_softly_after_a_shout_is_heard_again_after_a_while(
    seconds: float, is_silent_at_the_end: bool
) -> None:
    detector = SilenceDetector()
    detector.is_silent(tone(0))
    heard = [detector.is_silent(tone(-46)) for _ in range(round(seconds / 0.032))]
    assert heard[-1] is is_silent_at_the_end
