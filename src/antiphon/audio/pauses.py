"""Cuts a long recording into pieces at its quietest moments, so that few words are cut."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from antiphon.audio.pcm import Signal, to_signal
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES

LONGEST_PIECE_S: Final = 24
SHORTEST_PIECE_S: Final = 12
PAUSE_MS: Final = 240
"""The length of the pause that is looked for."""

_FRAME: Final = MICROPHONE_HZ // 50
_WIDTH: Final = PAUSE_MS * MICROPHONE_HZ // 1_000 // _FRAME


def cut_at_pauses(pcm: bytes) -> Iterator[bytes]:
    """Yields a 16 kHz recording in pieces of at most `LONGEST_PIECE_S`. Together they are the whole recording."""
    longest, shortest = LONGEST_PIECE_S * MICROPHONE_HZ, SHORTEST_PIECE_S * MICROPHONE_HZ
    while len(pcm) > longest * SAMPLE_BYTES:
        ahead = to_signal(pcm[shortest * SAMPLE_BYTES : longest * SAMPLE_BYTES])
        end = (shortest + _quietest(ahead)) * SAMPLE_BYTES
        yield pcm[:end]
        pcm = pcm[end:]
    yield pcm


def _quietest(signal: Signal) -> int:
    """Returns the middle of the quietest stretch, in samples."""
    power = np.mean(np.square(signal[: len(signal) // _FRAME * _FRAME].reshape(-1, _FRAME)), axis=1)
    levels = np.convolve(power, np.full(_WIDTH, 1 / _WIDTH), mode="valid")
    return (int(np.argmin(levels)) + _WIDTH // 2) * _FRAME
