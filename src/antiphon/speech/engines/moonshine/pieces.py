"""Long speech in pieces that the model can hold, and their texts in one.

A piece ends in a pause, if there is one. Else two pieces share some time, and are joined at the words that both have.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np

from antiphon.audio.pcm import Signal
from antiphon.sound_format import MICROPHONE_HZ

LONGEST_S: Final = 12
"""The time that the encoder takes grows with the square of the length, and the model was taught with short ones."""
SHORTEST_S: Final = 7
SHARED_S: Final = 1.5
"""Some words, so that one of them is whole in both pieces."""
PAUSE_MS: Final = 240
PAUSE_DB: Final = 25
"""As much quieter than its loud parts is speech where nothing is said."""
MAX_WORDS_PER_S: Final = 5
MAX_EDGE_WORDS: Final = 3
"""Words beyond a single one in common. With more of them, that "the" or "of" is another one."""

_FRAME: Final = MICROPHONE_HZ // 50
_PAUSE: Final = PAUSE_MS * MICROPHONE_HZ // 1_000
_LOUD_SHARE: Final = 0.9
_QUIETEST: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Piece:
    signal: Signal
    shared_s: float
    """How much of its beginning is the end of the piece before."""


def cut(signal: Signal) -> Iterator[Piece]:
    shared_s = 0.0
    while len(signal) > LONGEST_S * MICROPHONE_HZ:
        end, is_pause = _find_end(signal[: LONGEST_S * MICROPHONE_HZ])
        yield Piece(signal[:end], shared_s)
        shared_s = 0.0 if is_pause else SHARED_S
        signal = signal[end - int(shared_s * MICROPHONE_HZ) :]
    yield Piece(signal, shared_s)


def join(before: str, after: str, shared_s: float) -> str:
    """Two texts in one. The words of the shared time are in both, but for those that were cut."""
    if not shared_s:
        return f"{before} {after}".strip()
    first, second = before.split(), after.split()
    most = int(shared_s * MAX_WORDS_PER_S)
    tail, head = first[-most:], second[:most]
    match = SequenceMatcher(None, _plain(tail), _plain(head), autojunk=False).find_longest_match()
    edges = len(tail) - match.a - match.size + match.b
    if not match.size or (match.size == 1 and edges > MAX_EDGE_WORDS):
        return " ".join([*first, *second])
    # What one of them has beyond the words in common is at its edge, and was cut.
    kept = len(first) - len(tail) + match.a + match.size
    return " ".join([*first[:kept], *second[match.b + match.size :]])


def _find_end(signal: Signal) -> tuple[int, bool]:
    """Where in its last part it is quietest, and whether nothing is said there."""
    levels_db = _levels_db(signal)
    first = SHORTEST_S * MICROPHONE_HZ // _FRAME
    place = first + int(np.argmin(levels_db[first:]))
    loud_db = float(np.quantile(levels_db, _LOUD_SHARE))
    # A level is that of the time from its frame on.
    return place * _FRAME + _PAUSE // 2, loud_db - float(levels_db[place]) >= PAUSE_DB


def _levels_db(signal: Signal) -> Signal:
    """Of a pause's length, from each frame of 20 ms on."""
    power = np.mean(np.square(signal[: len(signal) // _FRAME * _FRAME].reshape(-1, _FRAME)), axis=1)
    width = _PAUSE // _FRAME
    levels: Signal = 10 * np.log10(np.convolve(power, np.full(width, 1 / width), mode="valid") + _QUIETEST)
    return levels


def _plain(words: Sequence[str]) -> list[str]:
    return [re.sub(r"[^\w']", "", word).lower() for word in words]
