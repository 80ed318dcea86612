"""Turns the network's spectra into samples, chunk by chunk: the first is ready before the rest is computed.

A spectrum is the sum of three parts: harmonics (a pulse train at the pitch, filtered), shaped noise, and a part whose
phases the network gives itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.audio.pcm import Signal

HZ: Final = 24_000
FRAME_SAMPLES: Final = 300
FRAME_MS: Final = FRAME_SAMPLES * 1_000 / HZ
_WINDOW_SAMPLES: Final = 1_200
_OVERLAP: Final = _WINDOW_SAMPLES // FRAME_SAMPLES
_HALF: Final = _WINDOW_SAMPLES // 2

VOICED_HZ: Final = 40.0
"""A lower pitch means that there is none."""
HIGHEST_HARMONIC_HZ: Final = 11_000.0
_NEAR_ZERO: Final = 2e-3
_LOUDEST: Final = 7.0
"""The highest log magnitude: anything above is a mistake of the network."""
_NOISE_SEED: Final = 1
"""Any number: the same text then always gives the same samples."""

Part = NDArray[np.float32]
"""One value for each frequency in each frame."""
Spectra = NDArray[np.complex64]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """What the network says about an utterance. Magnitudes are logarithms."""

    harmonics: Part
    harmonic_phases: Part
    """Before tanh, in half turns."""
    noise: Part
    rest: Part
    rest_phases: Part
    pitch_hz: Signal

    @property
    def frames(self) -> int:
        return self.pitch_hz.size


def synthesize(spectrum: Spectrum, chunks: Iterator[tuple[int, int]]) -> Iterator[tuple[Signal, int]]:
    """Yields the samples of each chunk, given as its first frame and the one after its last, and the frames left.

    A chunk has at least two frames.
    """
    random = np.random.default_rng(_NOISE_SEED)
    window = _window()
    pulses = np.pad(_pulse_train(spectrum.pitch_hz), _HALF, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(pulses, _WINDOW_SAMPLES)[::FRAME_SAMPLES]
    # A unit cosine then has the magnitude 1.
    pulse_window = window / np.float32(_WINDOW_SAMPLES / 4)
    # The squared windows of overlapping frames add up to 1.5.
    output_window = window / np.float32(1.5)
    overlap = np.zeros((_OVERLAP - 1, FRAME_SAMPLES), np.float32)
    for first, last in chunks:
        spectra = np.fft.rfft(windows[first:last] * pulse_window, axis=1).T.astype(np.complex64, copy=False)
        signals = np.fft.irfft(_mix(spectra, spectrum, slice(first, last), random).T, _WINDOW_SAMPLES, axis=1)
        pieces = (signals * output_window).reshape(last - first, _OVERLAP, FRAME_SAMPLES)
        sums = np.zeros((last - first + _OVERLAP - 1, FRAME_SAMPLES), np.float32)
        sums[: _OVERLAP - 1] = overlap
        for at in range(_OVERLAP):
            sums[at : at + last - first] += pieces[:, at]
        overlap = sums[last - first :]
        # The first frame is centred on the first sample.
        begin = 0 if first else _HALF // FRAME_SAMPLES
        end = last - first if last < spectrum.frames else last - first + _HALF // FRAME_SAMPLES
        yield sums[begin:end].reshape(-1), spectrum.frames - last


def _mix(pulses: Spectra, spectrum: Spectrum, frames: slice, random: np.random.Generator) -> Spectra:
    bins, count = pulses.shape
    mixed = random.standard_normal((bins, 2 * count), dtype=np.float32).view(np.complex64)
    mixed *= _magnitude(spectrum.noise[:, frames])
    harmonics = _polar(spectrum.harmonics[:, frames], np.tanh(spectrum.harmonic_phases[:, frames]) * np.float32(np.pi))
    harmonics *= pulses
    mixed += harmonics
    mixed += _polar(spectrum.rest[:, frames], spectrum.rest_phases[:, frames])
    return mixed


def _polar(log_magnitude: Part, phase: Part) -> Spectra:
    turned = np.empty(phase.shape, np.complex64)
    np.cos(phase, out=turned.real)
    np.sin(phase, out=turned.imag)
    turned *= _magnitude(log_magnitude)
    return turned


def _magnitude(logarithm: Part) -> Part:
    return np.exp(np.minimum(logarithm, np.float32(_LOUDEST)))


def _pulse_train(pitch_hz: Signal) -> Signal:
    """Sums all harmonics of the pitch: sum cos(n x) for n from 1 to N is sin((N + 1/2) x) / (2 sin(x / 2)) - 1/2."""
    frames = np.arange(pitch_hz.size, dtype=np.float32)
    # A frame's pitch is the one in its middle.
    samples = (np.arange(pitch_hz.size * FRAME_SAMPLES, dtype=np.float32) + np.float32(0.5)) / FRAME_SAMPLES - 0.5
    hz = np.interp(samples, frames, pitch_hz)
    is_voiced = hz > VOICED_HZ
    hz = np.maximum(hz, VOICED_HZ)
    angle = 2 * np.pi * np.modf(np.cumsum(hz) / HZ)[0].astype(np.float32)
    count = (np.floor(HIGHEST_HARMONIC_HZ / hz) + 0.5).astype(np.float32)
    below = 2 * np.sin(angle / 2)
    is_peak = np.abs(below) <= _NEAR_ZERO
    pulses = np.where(is_peak, count, np.sin(count * angle) / np.where(is_peak, np.float32(1), below)) - np.float32(0.5)
    train: Signal = np.where(is_voiced, pulses, 0).astype(np.float32)
    return train


@cache
def _window() -> Signal:
    """Returns a periodic Hann window."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW_SAMPLES) / _WINDOW_SAMPLES)
    return window.astype(np.float32)
