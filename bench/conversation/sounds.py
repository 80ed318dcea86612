"""The audio of sayings as a microphone would pick it up, with the rests of the speaker."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.client.speaking import QUIET, end_of_speech_ms
from antiphon.sound_format import MICROPHONE_HZ
from bench.conversation.sayings import REST, Saying
from bench.speech.clips import make_clip

REST_MS: Final = (400, 800)
_WINDOW_MS: Final = 10
_WINDOW: Final = MICROPHONE_HZ * _WINDOW_MS // 1_000
_LEAST_GAP_MS: Final = 50
"""The shortest gap at a comma. Shorter gaps belong to consonants."""
_DECAY_MS: Final = 20
"""How much of the silence is kept on either side, where one word fades and the next one begins."""


class NoGap(Exception):
    """The voice made no pause at a comma."""


@dataclass(frozen=True, slots=True)
class Utterance:
    saying: Saying
    pcm: bytes
    """PCM16, mono, little-endian, 16 kHz."""
    rest_ms: int = 0
    """How long the speaker rests, from the last sound before the rest to the first one after it."""

    @property
    def ends_at_ms(self) -> int:
        """When the last sound ends."""
        return end_of_speech_ms(self.pcm)


def speak(saying: Saying, models_dir: Path, chance: Random) -> Utterance:
    """Speaks a saying. The rest is placed at a comma, where the intonation of the voice shows that more will follow.

    Joining two sentences would not do, because the first would end like a sentence. Raises `NoGap`.
    """
    before, rest, after = (part.strip() for part in saying.text.partition(REST))
    if not rest:
        return Utterance(saying, make_clip(saying.text, saying.voice, models_dir).pcm)
    samples = np.frombuffer(make_clip(f"{before}, {after}", saying.voice, models_dir).pcm, np.int16)
    first, last = find_gap(samples, len(before) / len(before + after))
    rest_ms = chance.randint(*REST_MS)
    return Utterance(saying, insert_rest(samples, first, last, rest_ms).tobytes(), rest_ms)


def speak_all(sayings: Sequence[Saying], models_dir: Path, seed: int) -> list[Utterance]:
    chance = Random(f"rests {seed}")
    return [speak(saying, models_dir, chance) for saying in sayings]


def insert_rest(samples: NDArray[np.int16], first: int, last: int, rest_ms: int) -> NDArray[np.int16]:
    """Stretches the silence from `first` to `last` to a rest of this length, with the noise of a microphone."""
    decay = _DECAY_MS * MICROPHONE_HZ // 1_000
    return np.concatenate([samples[: first + decay], quiet(rest_ms - 2 * _DECAY_MS), samples[last - decay :]])


def quiet(ms: int) -> NDArray[np.int16]:
    return np.random.default_rng(ms).normal(0, 8, ms * MICROPHONE_HZ // 1_000).astype(np.int16)


def find_gap(samples: NDArray[np.int16], share: float, within: float = 0.25) -> tuple[int, int]:
    """Finds the longest silence within speech that is near this share of its length. Raises `NoGap`."""
    loud = np.abs(samples[: len(samples) - len(samples) % _WINDOW].astype(np.int32)).reshape(-1, _WINDOW).max(1) > QUIET
    at = np.flatnonzero(loud)
    length = at[-1] - at[0]
    gaps = [
        (after - before, before + 1, after)
        for before, after in pairwise(at)
        if abs((before - at[0]) / length - share) < within and (after - before - 1) * _WINDOW_MS >= _LEAST_GAP_MS
    ]
    if not gaps:
        raise NoGap("There is no silence within this speech.")
    _, first, last = max(gaps)
    return int(first) * _WINDOW, int(last) * _WINDOW
