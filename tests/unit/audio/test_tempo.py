import math
import struct
from itertools import pairwise

import pytest

from antiphon.audio import AudioError
from antiphon.audio.tempo import Tempo

HZ = 22_050


def tone(pitch_hz: float, seconds: float) -> bytes:
    count = int(HZ * seconds)
    return struct.pack(f"<{count}h", *(int(9_000 * math.sin(2 * math.pi * pitch_hz * n / HZ)) for n in range(count)))


def seconds(pcm: bytes) -> float:
    return len(pcm) / 2 / HZ


def pitch_hz(pcm: bytes) -> float:
    samples = [each for (each,) in struct.iter_unpack("<h", pcm)]
    rises = sum(1 for before, after in pairwise(samples) if before < 0 <= after)
    return rises / seconds(pcm)


@pytest.mark.parametrize("speed", [0.25, 0.5, 0.8, 1.25, 2.0, 4.0])
def test_the_duration_follows_the_speed(speed: float) -> None:
    assert seconds(Tempo(speed, HZ).push(tone(120, 3), last=True)) == pytest.approx(3 / speed, rel=0.02)


@pytest.mark.parametrize("speed", [0.5, 0.9, 1.5, 2.0])
def test_a_voice_keeps_its_pitch(speed: float) -> None:
    assert pitch_hz(Tempo(speed, HZ).push(tone(120, 3), last=True)) == pytest.approx(120, rel=0.02)


@pytest.mark.parametrize("speed", [0.5, 1.5])
def test_chunks_give_the_same_audio_as_the_whole(speed: float) -> None:
    sound, pieces = tone(150, 1), Tempo(speed, HZ)
    joined = b"".join(pieces.push(sound[begin : begin + 777]) for begin in range(0, len(sound), 777))
    assert joined + pieces.push(b"", last=True) == Tempo(speed, HZ).push(sound, last=True)


def test_most_audio_is_emitted_before_the_end() -> None:
    assert seconds(Tempo(2.0, HZ).push(tone(150, 1))) > 0.4


def test_normal_speed_leaves_every_sample_unchanged() -> None:
    sound = tone(150, 0.5)
    assert Tempo(1.0, HZ).push(sound, last=True) == sound


@pytest.mark.parametrize("sound", [b"", b"\x01\x02", tone(150, 0.01)])
def test_a_sound_shorter_than_a_window_stays_short(sound: bytes) -> None:
    assert seconds(Tempo(2.0, HZ).push(sound, last=True)) <= 0.015


@pytest.mark.parametrize("speed", [0.0, -1.0, 0.2, 5.0, math.nan, math.inf])
def test_an_unintelligible_speed_is_refused(speed: float) -> None:
    with pytest.raises(AudioError, match="Choose a speed"):
        Tempo(speed, HZ)
