"""Where a sound stops, by its loudness."""

import numpy as np
import pytest

from antiphon.audio.hush import DROP_DB, Hush
from antiphon.audio.pcm import FRAME_BYTES, FRAME_SAMPLES, Samples


def tone(level_db: float) -> bytes:
    """A frame so much quieter than full scale."""
    wave = np.sin(2 * np.pi * 250 / 16_000 * np.arange(FRAME_SAMPLES))
    samples: Samples = (32_000 * 10 ** (level_db / 20) * wave).astype(np.int16)
    return samples.tobytes()


def test_it_is_hushed_with_the_first_frame_that_is_much_quieter() -> None:
    hush = Hush()
    assert not hush.hear(tone(-10))
    assert hush.hear(tone(-10 - DROP_DB - 2))


def test_what_is_only_softer_is_heard() -> None:
    hush = Hush()
    heard = [hush.hear(tone(level)) for level in (-10, -25, -40, -10, -40)]
    assert heard == [False] * 5


def test_a_quiet_room_has_not_fallen_silent() -> None:
    hush = Hush()
    assert not any(hush.hear(tone(-70)) for _ in range(50))
    assert not Hush().hear(bytes(FRAME_BYTES))


def test_it_goes_by_the_voice_not_by_a_fixed_level() -> None:
    hush = Hush()
    assert not hush.hear(tone(-45))
    assert not hush.hear(tone(-75))
    assert hush.hear(bytes(FRAME_BYTES))


@pytest.mark.parametrize(("seconds", "is_hushed"), [(0.3, True), (3, False)])
def test_who_speaks_softly_after_a_shout_is_heard_again_after_a_while(seconds: float, is_hushed: bool) -> None:
    hush = Hush()
    hush.hear(tone(0))
    heard = [hush.hear(tone(-46)) for _ in range(round(seconds / 0.032))]
    assert heard[-1] is is_hushed
