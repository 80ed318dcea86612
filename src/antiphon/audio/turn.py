"""Detects from the audio whether a speaker has finished: Smart Turn v3.2."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from antiphon.audio import AudioError
from antiphon.audio.inference import open_session
from antiphon.audio.pcm import Signal, to_signal
from antiphon.audio.smart_turn import COUNTS, FEATURES, PLACES, rewrite
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES

CONTEXT_S: Final = 4.0
"""How much of the turn's end the model is given, as if nothing came before. Most turns are shorter: it gets them whole.
For 267 pauses in sentences and 489 ends of 28 Kokoro voices, the area under the curve (0.5 is chance) is 0.68 for the
whole turn, and 0.62 for its last 1.45 s, which take 20 ms instead of 38."""

_SAMPLES: Final = 8 * MICROPHONE_HZ
"""The length that the model was trained on."""
_WINDOW: Final = 400
_HOP: Final = 160
_EDGE: Final = _WINDOW // 2
_FRAMES: Final = _SAMPLES // _HOP
_MELS: Final = 80
_TINY: Final = 1e-7

_PLACES: Final = _FRAMES // 2
_NEAR: Final = 4
"""How many silent positions just before the audio are kept one by one."""
_FAR: Final = 8
"""How many positions stand for all the silence before those."""


class TurnDetector:
    """One model for all sessions and any number of threads."""

    def __init__(self, path: Path, *, context_s: float = CONTEXT_S) -> None:
        """Raises `ModelFileError`."""
        self._session = open_session(path, rewrite=rewrite)
        self._context_bytes = SAMPLE_BYTES * min(_SAMPLES, round(context_s * MICROPHONE_HZ))

    def completeness(self, pcm: bytes) -> float:
        """Returns the probability that this is a complete turn: 16 kHz speech and 0.15 to 0.25 s of silence after it.

        With less silence the probability is lower for complete and incomplete turns alike, so no length separates them
        better. Silence alone often passes for a complete turn: call this only after speech.
        """
        if len(pcm) < SAMPLE_BYTES:
            raise AudioError("There is no audio to judge.")
        signal = to_signal(pcm[-self._context_bytes :])
        places, counts = choose_places(len(signal))
        heard = features(signal, 2 * len(places) + 2)
        (probabilities,) = self._session.run(None, {FEATURES: heard[np.newaxis], PLACES: places, COUNTS: counts})
        return float(probabilities[0, 0])


def choose_places(samples: int) -> tuple[NDArray[np.int64], Signal]:
    """Returns the model positions that the last frames belong to, and how many positions each stands for.

    The model expects 8 s, padded with silence at the front. That silence differs only in its position, so a few
    positions of it are enough.
    """
    silent = max(0, _SAMPLES - samples - _EDGE) // _HOP // 2
    places = np.arange(_PLACES)
    counts = np.ones(_PLACES, np.float32)
    if silent > _NEAR + _FAR:
        borders = np.linspace(0, silent - _NEAR, _FAR + 1).round().astype(np.int64)
        places = np.concatenate([(borders[:-1] + borders[1:] - 1) // 2, places[silent - _NEAR :]])
        counts = np.concatenate([np.diff(borders).astype(np.float32), counts[silent - _NEAR :]])
    return places, counts


def features(signal: Signal, count: int) -> Signal:
    """Returns the last `count` frames of the log-mel spectrogram of at most 8 s, padded with silence at the front."""
    mean = signal.sum(dtype=np.float64) / _SAMPLES
    variance = np.square(signal, dtype=np.float64).sum() / _SAMPLES - mean**2
    scale = 1 / np.sqrt(variance + _TINY)
    needed = count * _HOP + _EDGE
    heard = signal[-needed:]
    padded = np.full(needed + _EDGE, -mean * scale, np.float32)
    padded[needed - len(heard) : needed] = (heard - mean) * scale
    padded[needed:] = padded[-_EDGE - 2 : -2 * _EDGE - 2 : -1]
    frames = sliding_window_view(padded, _WINDOW)[::_HOP][:count]
    power = np.square(np.abs(np.fft.rfft(frames * _HANN)))
    loudness = np.log10(np.maximum(_FILTERS @ power.T, 1e-10))
    loudness = np.maximum(loudness, loudness.max() - 8)
    log_mel: Signal = ((loudness + 4) / 4).astype(np.float32)
    return log_mel


def _mel_filters() -> Signal:
    """Triangles of equal area on Slaney's scale: linear up to 1 kHz, logarithmic above."""
    linear_hz, per_octave = 200 / 3, 27 / np.log(6.4)
    turn = 1_000 / linear_hz
    marks = np.linspace(0, turn + per_octave * np.log(MICROPHONE_HZ / 2 / 1_000), _MELS + 2)
    edges = np.where(marks < turn, marks * linear_hz, 1_000 * np.exp((marks - turn) / per_octave))
    low, middle, high = edges[:-2, np.newaxis], edges[1:-1, np.newaxis], edges[2:, np.newaxis]
    bins = np.fft.rfftfreq(_WINDOW, 1 / MICROPHONE_HZ)
    triangles = np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))
    filters: Signal = (np.maximum(triangles, 0) * 2 / (high - low)).astype(np.float32)
    return filters


_HANN: Final = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)).astype(np.float32)
_FILTERS: Final = _mel_filters()
