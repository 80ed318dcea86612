"""The assistant's own voice from a loudspeaker in a room, and people who speak over it."""

import numpy as np
import pytest

from antiphon.audio.pcm import Signal
from antiphon.audio.vad import Vad
from antiphon.sound_format import MICROPHONE_HZ
from tests.unit.audio.conftest import Speaker, at_level
from tests.unit.audio.test_barge import INTERRUPTIONS, hear, loudspeaker, onset, playing

FURNISHED = (0.03, 0.25)
BARE = (0.09, 1.0)
"""How fast the echoes die away, in seconds, and their power beside the direct sound's."""
ANSWER = "I have set a timer for ten minutes, and I will remind you to call your mother on Friday evening."


def reverberate(sound: Signal, decay_s: float, echoes: float, seed: int) -> Signal:
    """As it is heard in a room."""
    seconds = np.arange(round(6 * decay_s * MICROPHONE_HZ)) / MICROPHONE_HZ
    response = np.random.default_rng(seed).normal(0, 1, len(seconds)) * np.exp(-seconds / decay_s)
    response *= np.sqrt(echoes / np.square(response).sum())
    response[0] = 1.0
    # Other sizes can take a hundred times as long.
    size = 1 << (len(sound) + len(response)).bit_length()
    heard = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(response, size), size)
    return heard[: len(sound)].astype(np.float32)


def delays_ms(vad: Vad, speaker: Speaker, own: Signal, dbfs: float) -> list[float]:
    """How long after somebody began to speak, while that was heard of the answer, it is interrupted."""
    delays = []
    for i, text in enumerate(INTERRUPTIONS):
        speech = at_level(speaker.say(text, 1.15), dbfs)
        start = round((2.5 + 0.007 * i) * MICROPHONE_HZ)
        microphone = own.copy()
        microphone[start : start + len(speech)] += speech
        at_ms = hear(vad, playing(speaker), microphone, playing=True)
        delays.append(np.inf if at_ms is None else at_ms - (start + onset(speech)) * 1_000 / MICROPHONE_HZ)
    return delays


def test_a_quiet_person_is_heard_over_the_loudspeaker(vad: Vad, speaker: Speaker) -> None:
    own = reverberate(loudspeaker(speaker, -20, 0.13), *FURNISHED, seed=1)
    delays = delays_ms(vad, speaker, own, -32)
    assert min(delays) > 0
    assert np.quantile(delays, 0.85, method="higher") <= 300


def test_a_quiet_person_is_heard_once_the_clients_echo_canceller_has_adapted(vad: Vad, speaker: Speaker) -> None:
    own = reverberate(loudspeaker(speaker, -20, 0.13), *FURNISHED, seed=1)
    own *= np.interp(np.arange(len(own)) / MICROPHONE_HZ, [0.9, 1.3], [1, 0.003]).astype(np.float32)
    delays = delays_ms(vad, speaker, own, -38)
    assert min(delays) > 0
    assert np.quantile(delays, 0.85, method="higher") <= 300


@pytest.mark.parametrize("room", [FURNISHED, BARE], ids=["furnished", "bare"])
def test_the_assistant_does_not_interrupt_itself_in_a_room(
    vad: Vad, speaker: Speaker, room: tuple[float, float]
) -> None:
    interrupted = []
    for seed in range(10):
        heard = reverberate(loudspeaker(speaker, -20, 0.04 * seed, ANSWER), *room, seed)
        interrupted.append(hear(vad, playing(speaker, ANSWER), heard, playing=True))
    assert interrupted == [None] * 10
