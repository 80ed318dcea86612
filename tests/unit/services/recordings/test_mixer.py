"""Both sides of a call on one time line."""

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.services.recordings.mixer import HZ, Mixer
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ

FRAME_S = 0.02
LOUD = 8_000

Frames = NDArray[np.int16]


def tone(seconds: float, hz: int, level: int = LOUD, pitch: float = 440.0) -> bytes:
    times = np.arange(round(seconds * hz)) / hz
    return (level * np.sin(2 * np.pi * pitch * times)).astype(np.int16).tobytes()


def speak(mixer: Mixer, seconds: float, *, from_s: float, level: int = LOUD, clock: float = 1.0) -> float:
    """Sends a tone in frames, as a microphone does whose clock runs at this speed. Returns when the last one came."""
    pcm, size = tone(seconds, MICROPHONE_HZ, level), 2 * round(FRAME_S * MICROPHONE_HZ)
    at_s = from_s
    for at in range(0, len(pcm), size):
        at_s += FRAME_S / clock
        mixer.hear(pcm[at : at + size], at_s)
    return at_s


def sound(frames: Frames, channel: int) -> list[tuple[float, float]]:
    """Returns the beginning and the end of each stretch of sound on a channel, in seconds."""
    loud = np.abs(frames[:, channel].astype(np.int32)) > LOUD // 20
    places = np.flatnonzero(loud)
    if not len(places):
        return []
    # A tone is near zero for less than 5 ms.
    gaps = np.flatnonzero(np.diff(places) > 0.005 * HZ)
    starts, ends = [places[0], *places[gaps + 1]], [*places[gaps], places[-1]]
    return [(start / HZ, end / HZ) for start, end in zip(starts, ends, strict=True)]


def near(*stretches: tuple[float, float]) -> list[object]:
    return [pytest.approx(each, abs=0.005) for each in stretches]


def user(frames: Frames) -> list[tuple[float, float]]:
    return sound(frames, 0)


def assistant(frames: Frames) -> list[tuple[float, float]]:
    return sound(frames, 1)


def test_what_was_said_is_where_it_was_said_and_silence_is_around_it() -> None:
    mixer = Mixer()
    speak(mixer, 0.5, from_s=1.0)
    mixer.play(1, tone(0.4, SPEECH_HZ), 2.0)
    frames = mixer.read(3.0, last=True)
    assert frames.shape == (3 * HZ, 2)
    assert user(frames) == near((1.0, 1.5))
    assert assistant(frames) == near((2.0, 2.4))


def test_both_can_speak_at_once() -> None:
    mixer = Mixer()
    mixer.play(1, tone(1.0, SPEECH_HZ), 0.5)
    speak(mixer, 0.5, from_s=1.0)
    frames = mixer.read(2.0, last=True)
    assert (user(frames), assistant(frames)) == (near((1.0, 1.5)), near((0.5, 1.5)))


def test_it_does_not_matter_in_how_many_parts_it_is_read() -> None:
    def play(mixer: Mixer) -> None:
        speak(mixer, 1.0, from_s=0.3)
        mixer.play(1, tone(0.7, SPEECH_HZ), 0.9)

    whole, parts = Mixer(), Mixer()
    play(whole)
    play(parts)
    read = [parts.read(until_s) for until_s in (0.0, 1.4, 1.41, 2.2)]
    together = np.concatenate([*read, parts.read(2.5, last=True)])
    # The resampler rounds a little differently.
    np.testing.assert_allclose(together, whole.read(2.5, last=True), atol=2)


def test_speech_that_is_sent_at_once_is_played_piece_after_piece() -> None:
    mixer = Mixer()
    for _ in range(3):
        mixer.play(1, tone(0.5, SPEECH_HZ), 1.0)
    assert assistant(mixer.read(4.0, last=True)) == near((1.0, 2.5))


def test_an_answer_is_cut_where_it_was_interrupted() -> None:
    mixer = Mixer()
    mixer.play(1, tone(3.0, SPEECH_HZ), 1.0)
    first = mixer.read(1.0)
    mixer.interrupt(None, 2.0)
    mixer.play(2, tone(0.5, SPEECH_HZ), 3.0)
    frames = np.concatenate([first, mixer.read(5.0, last=True)])
    assert assistant(frames) == near((1.0, 2.0), (3.0, 3.5))


def test_an_answer_is_cut_where_the_client_says_that_it_stopped() -> None:
    mixer = Mixer()
    for _ in range(3):
        mixer.play(1, tone(0.5, SPEECH_HZ), 1.0)
    first = mixer.read(1.0)
    mixer.interrupt(700, 2.0)
    assert assistant(np.concatenate([first, mixer.read(4.0, last=True)])) == near((1.0, 1.7))


def test_an_answer_that_was_not_played_at_all_is_not_recorded() -> None:
    mixer = Mixer()
    mixer.play(1, tone(1.0, SPEECH_HZ), 1.0)
    mixer.interrupt(0, 1.4)
    assert assistant(mixer.read(3.0, last=True)) == []


def test_what_was_read_stays_and_the_rest_is_cut() -> None:
    mixer = Mixer()
    mixer.play(1, tone(3.0, SPEECH_HZ), 0.0)
    first = mixer.read(2.0)
    mixer.interrupt(500, 2.0)
    frames = np.concatenate([first, mixer.read(4.0, last=True)])
    assert assistant(frames) == near((0.0, 1.0))


def test_an_answer_that_was_held_goes_on_where_it_was() -> None:
    mixer = Mixer()
    mixer.play(1, tone(1.0, SPEECH_HZ), 1.0)
    mixer.hold(1.4)
    mixer.play(1, tone(0.5, SPEECH_HZ), 1.5)
    mixer.resume(2.0)
    assert assistant(mixer.read(4.0, last=True)) == near((1.0, 1.4), (2.0, 3.1))


def test_what_was_held_and_then_interrupted_is_not_recorded() -> None:
    mixer = Mixer()
    mixer.play(1, tone(1.0, SPEECH_HZ), 1.0)
    mixer.hold(1.4)
    mixer.interrupt(None, 1.6)
    mixer.play(2, tone(0.3, SPEECH_HZ), 2.0)
    assert assistant(mixer.read(3.0, last=True)) == near((1.0, 1.4), (2.0, 2.3))


def test_a_jitter_of_the_network_leaves_no_gaps() -> None:
    mixer, size = Mixer(), 2 * round(FRAME_S * MICROPHONE_HZ)
    pcm = tone(2.0, MICROPHONE_HZ)
    delays = np.random.default_rng(3).uniform(0, 0.15, len(pcm) // size)
    for number, delay_s in enumerate(delays):
        mixer.hear(pcm[number * size : (number + 1) * size], 1.0 + (number + 1) * FRAME_S + delay_s)
    [(start, end)] = user(mixer.read(4.0, last=True))
    assert end - start == pytest.approx(2.0, abs=0.01)
    assert 1.0 <= start <= 1.16


def test_what_comes_late_after_a_stall_of_the_network_is_put_where_it_was_said() -> None:
    mixer = Mixer()
    speak(mixer, 0.5, from_s=1.0)
    read = [mixer.read(now_s) for now_s in (1.5, 2.5, 4.4)]
    for _ in range(150):
        mixer.hear(tone(FRAME_S, MICROPHONE_HZ), 4.5)
    speak(mixer, 0.5, from_s=4.5)
    frames = np.concatenate([*read, mixer.read(6.0, last=True)])
    assert (user(frames)[0][0], user(frames)[-1][1]) == pytest.approx((1.0, 5.0), abs=0.01)
    assert sum(end - start for start, end in user(frames)) > 3.9


@pytest.mark.parametrize("closed_s", [0.6, 2.0, 10.0])
def test_what_is_said_after_the_microphone_was_closed_is_put_where_it_came(closed_s: float) -> None:
    mixer = Mixer()
    at_s = speak(mixer, 0.5, from_s=1.0)
    first = mixer.read(at_s + closed_s)
    speak(mixer, 1.0, from_s=at_s + closed_s)
    frames = np.concatenate([first, mixer.read(20.0, last=True)])
    assert user(frames) == near((1.0, 1.5), (1.5 + closed_s, 2.5 + closed_s))


@pytest.mark.parametrize("clock", [0.999, 1.001])
def test_a_microphone_whose_clock_is_wrong_stays_in_time(clock: float) -> None:
    """In ten minutes such a clock is wrong by 0.6 seconds."""
    mixer, at_s = Mixer(), 0.0
    read = []
    for _ in range(150):
        at_s = speak(mixer, 3.0, from_s=at_s, clock=clock)
        at_s = speak(mixer, 1.0, from_s=at_s, level=5, clock=clock)
        read.append(mixer.read(at_s))
    last = speak(mixer, 0.5, from_s=at_s, clock=clock)
    frames = np.concatenate([*read, mixer.read(last + 1.0, last=True)])
    assert user(frames[-2 * HZ :])[-1][1] == pytest.approx(1.0, abs=0.1)
    assert len(frames) == pytest.approx((last + 1.0) * HZ, abs=2)


def test_a_microphone_that_sends_faster_than_real_time_is_limited() -> None:
    mixer = Mixer()
    for _ in range(3_000):
        mixer.hear(tone(FRAME_S, MICROPHONE_HZ), 1.0)
    assert user(mixer.read(60.0, last=True))[-1][1] == pytest.approx(11.0, abs=0.2)


def test_the_speech_that_waits_to_be_played_is_limited() -> None:
    mixer, minute = Mixer(), bytes(2 * 60 * SPEECH_HZ)
    for _ in range(30):
        mixer.play(1, minute, 0.0)
    assert mixer._speech.end <= 11 * 60 * SPEECH_HZ
