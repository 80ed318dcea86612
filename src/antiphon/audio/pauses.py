"""Cuts a long recording into pieces in its pauses, so that few words are cut."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from antiphon.audio.noise import FRAME, frame_power, levels_db, speech_threshold_db
from antiphon.audio.pcm import Signal, to_signal
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES

LONGEST_PIECE_S: Final = 24
SHORTEST_PIECE_S: Final = 12
"""Speech without a pause is cut at its quietest moment between these two."""
PAUSE_MS: Final = 800
"""A pause of this length is always a place to cut. Moonshine skips sentences that follow a long pause: in recordings of
eight sentences with a second between them, up to a third of the words were lost."""
DIP_MS: Final = 240
"""The length of the stretch that is looked for where there is no pause."""

_PAUSE_FRAMES: Final = PAUSE_MS * MICROPHONE_HZ // 1_000 // FRAME
_DIP_FRAMES: Final = DIP_MS * MICROPHONE_HZ // 1_000 // FRAME


def cut_at_pauses(pcm: bytes) -> Iterator[bytes]:
    """Yields a 16 kHz recording in pieces of at most `LONGEST_PIECE_S`. Together they are the whole recording."""
    ends = [place * SAMPLE_BYTES for place in _middles_of_pauses(to_signal(pcm))]
    for start, end in pairwise([0, *ends, len(pcm)]):
        yield from _cut_long(pcm[start:end])


def _middles_of_pauses(signal: Signal) -> list[int]:
    """Returns the middle of each pause that has speech on both sides, in samples."""
    levels = levels_db(signal)
    if not levels.size:
        return []
    loud = np.flatnonzero(levels > speech_threshold_db(levels))
    return [
        (int(before) + int(after) + 1) // 2 * FRAME
        for before, after in pairwise(loud)
        if after - before > _PAUSE_FRAMES
    ]


def _cut_long(pcm: bytes) -> Iterator[bytes]:
    longest, shortest = LONGEST_PIECE_S * MICROPHONE_HZ, SHORTEST_PIECE_S * MICROPHONE_HZ
    while len(pcm) > longest * SAMPLE_BYTES:
        ahead = to_signal(pcm[shortest * SAMPLE_BYTES : longest * SAMPLE_BYTES])
        end = (shortest + _quietest(ahead)) * SAMPLE_BYTES
        yield pcm[:end]
        pcm = pcm[end:]
    yield pcm


def _quietest(signal: Signal) -> int:
    """Returns the middle of the quietest stretch, in samples."""
    levels = np.convolve(frame_power(signal), np.full(_DIP_FRAMES, 1 / _DIP_FRAMES), mode="valid")
    return (int(np.argmin(levels)) + _DIP_FRAMES // 2) * FRAME
