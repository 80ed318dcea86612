"""How a voice is made even: its loudness, and the silence around its words."""

from typing import Final

import numpy as np

from antiphon.audio.pcm import Signal

LOUDNESS: Final = 0.1
"""The root mean square of a voice, of full scale: -20 dB. Piper itself brings the highest peak of each sentence to full
scale: for that it has to know all of the sentence first, and a quiet word alone becomes as loud as a cry."""
KNEE: Final = 0.8
"""Of full scale. What is louder, at most one sample in 400, is bent: a hard stop would crackle."""
MAX_GAIN: Final = 8.0

QUIET: Final = 0.004
"""Of full scale, before the gain. Silence in a voice is some 0.0001, the faintest consonant 0.01."""
WINDOW_MS: Final = 5
BEFORE_MS: Final = 15
"""Of near-silence is left before the first sound that counts, so that no breath of it is lost."""
DECAY_MS: Final = 40


def gain_for(sample: Signal, hz: int) -> float:
    """What a voice that speaks like this is to be multiplied by."""
    speech = sample[find_speech(sample, hz) or slice(0)]
    return min(MAX_GAIN, LOUDNESS / float(np.sqrt(np.mean(speech**2)))) if speech.size else 1.0


def shape(signal: Signal, gain: float) -> Signal:
    """Every sample by itself, so that pieces of a sound fit together. Never beyond full scale."""
    louder = signal * np.float32(gain)
    size = np.abs(louder)
    room = 1 - KNEE
    bent = np.sign(louder) * (KNEE + room * np.tanh((size - KNEE) / room))
    return np.where(size > KNEE, bent, louder).astype(np.float32)


def find_speech(signal: Signal, hz: int) -> slice | None:
    """From where it begins to where it has died away; None if all is silence."""
    window = hz * WINDOW_MS // 1_000
    windows = signal[: signal.size - signal.size % window].reshape(-1, window)
    loud = np.flatnonzero(np.mean(windows**2, axis=1) > QUIET**2)
    if not loud.size:
        return None
    first = int(loud[0]) * window - hz * BEFORE_MS // 1_000
    last = int(loud[-1] + 1) * window + hz * DECAY_MS // 1_000
    return slice(max(0, first), min(signal.size, last))
