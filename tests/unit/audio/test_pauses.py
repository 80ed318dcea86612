"""Long recordings are cut where they are quiet."""

import numpy as np

from antiphon.audio.pauses import LONGEST_PIECE_S, SHORTEST_PIECE_S, cut_at_pauses
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES


def noise(seconds: float, level: float = 0.3) -> bytes:
    samples = np.random.default_rng(1).normal(0, level, int(seconds * MICROPHONE_HZ))
    return (np.clip(samples, -1, 1) * 32_767).astype(np.int16).tobytes()


def seconds(pcm: bytes) -> float:
    return len(pcm) / SAMPLE_BYTES / MICROPHONE_HZ


def test_a_short_recording_stays_whole() -> None:
    assert list(cut_at_pauses(noise(5))) == [noise(5)]
    assert list(cut_at_pauses(b"")) == [b""]


def test_a_long_recording_is_cut_in_its_pause() -> None:
    pcm = noise(17) + noise(0.4, 0.001) + noise(17)
    first, second = cut_at_pauses(pcm)
    assert first + second == pcm
    assert 17.0 <= seconds(first) <= 17.4


def test_pieces_are_neither_too_long_nor_too_short_without_a_pause() -> None:
    pcm = noise(100)
    *pieces, last = cut_at_pauses(pcm)
    assert b"".join([*pieces, last]) == pcm
    assert all(SHORTEST_PIECE_S <= seconds(piece) <= LONGEST_PIECE_S for piece in pieces)
    assert seconds(last) <= LONGEST_PIECE_S
