"""Recognises the assistant's own voice when the microphone picks it up from the loudspeaker."""

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.audio.pcm import Samples, Signal
from antiphon.audio.resample import Resampler, resample
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES, SPEECH_HZ

COMPARED_SAMPLES: Final = 4_096
"""How many microphone samples are compared: a quarter of a second."""
MIN_CORRELATION: Final = 0.35
"""Another voice exceeds this by chance, at some delay, once in a hundred times."""
SURE_CORRELATION: Final = 0.5
"""From this correlation on, the loudspeaker's delay and gain are learned."""
USUAL_SHARE: Final = 0.6
"""The share of the usual correlation that an echo keeps. A person speaking over it leaves less."""
RESIDUAL_CORRELATION: Final = 0.12
"""The least correlation of an echo at its usual delay that is not `LOUDER_DB` louder than usual: a room can leave as
little. Below it, the client may have cancelled the echo, and a quiet person is speaking."""
LOUDER_DB: Final = 4.0

# Voices differ enough below 4 kHz, at a byte a sample. An answer is sent faster than it is played, so the rest of a
# long one waits here.
_KEPT_HZ: Final = 8_000
_NEW_BYTES: Final = 3 * SAMPLE_BYTES * SPEECH_HZ
# The client may say late that it plays, and loudspeakers, wireless ones most of all, take their time.
_EARLY: Final = 2_048
_LATE: Final = 6_144
_COMPARED: Final = COMPARED_SAMPLES * _KEPT_HZ // MICROPHONE_HZ
_REGION: Final = _LATE + _COMPARED + _EARLY
_JITTER: Final = _KEPT_HZ // 500
# The room still sounds of what was played before.
_REVERB: Final = _KEPT_HZ // 8
_SMOOTHING: Final = 0.8
_EMPHASIS: Final = np.float32(0.8)


@dataclass(frozen=True, slots=True)
class _Loudspeaker:
    """What was learned about the loudspeaker: the last delay, and the smoothed gain and correlation."""

    delay: int
    gain: float
    correlation: float


class EchoDetector:
    """Compares the microphone with the answer that one session is playing."""

    def __init__(self) -> None:
        self._played: NDArray[np.int8] = np.zeros(0, np.int8)
        self._new: deque[tuple[bytes, Resampler]] = deque()
        """Pieces as they were sent, with their resampler. They are resampled only for a comparison: most answers are
        never interrupted."""
        self._new_bytes = 0
        self._first = 0
        self._hz = _KEPT_HZ
        self._resampler = Resampler(_KEPT_HZ, _KEPT_HZ)
        self._loudspeaker: _Loudspeaker | None = None

    @property
    def hears_loudspeaker(self) -> bool:
        """Whether the microphone has picked up the answer."""
        return self._loudspeaker is not None

    def add(self, pcm: bytes, hz: int) -> None:
        """Adds the next piece of the answer, in the order in which it is sent."""
        if hz != self._hz:
            self._resampler, self._hz = Resampler(hz, _KEPT_HZ), hz
        self._new.append((pcm, self._resampler))
        self._new_bytes += len(pcm)
        self._compact(at_most=_NEW_BYTES)

    def matches(self, heard: Samples, position: int) -> bool:
        """Whether the last `COMPARED_SAMPLES` samples of the microphone are what was playing.

        `position` says how many samples, at the microphone's rate, the client has been playing for. The level is not
        used until the loudspeaker is known: a threshold that rejects echo also rejects quiet people, most of whom
        have no echo at all.
        """
        self._compact(at_most=0)
        region = self._played_around(position * _KEPT_HZ // MICROPHONE_HZ)
        if not region.any():
            return False
        compared = _emphasize(np.frombuffer(resample(heard.tobytes(), MICROPHONE_HZ, _KEPT_HZ), np.int16))
        played = _emphasize(region)
        correlation = _correlate(compared, played)
        known, delay = self._loudspeaker, int(correlation.argmax())
        if correlation[delay] >= SURE_CORRELATION:
            self._update_loudspeaker(delay, _gain(compared, played, delay), float(correlation[delay]))
        if known is None:
            return bool(correlation[delay] >= MIN_CORRELATION)
        if correlation[delay] >= USUAL_SHARE * known.correlation:
            return True
        is_louder = _gain(compared, played, known.delay) >= known.gain * 10 ** (LOUDER_DB / 20)
        trace = correlation[max(0, known.delay - _JITTER) : known.delay + _JITTER].max()
        return bool(not is_louder and trace >= RESIDUAL_CORRELATION)

    def _compact(self, at_most: int) -> None:
        """Resamples the oldest pieces until at most this many bytes are left as they were sent."""
        while self._new_bytes > at_most:
            pcm, resampler = self._new.popleft()
            self._new_bytes -= len(pcm)
            samples = np.frombuffer(resampler.push(pcm), np.int16)
            coarse = np.rint(samples / 256).clip(-128, 127).astype(np.int8)
            self._played = np.concatenate([self._played, coarse])

    def _update_loudspeaker(self, delay: int, gain: float, correlation: float) -> None:
        if known := self._loudspeaker:
            gain = _SMOOTHING * known.gain + (1 - _SMOOTHING) * gain
            correlation = _SMOOTHING * known.correlation + (1 - _SMOOTHING) * correlation
        self._loudspeaker = _Loudspeaker(delay, gain, correlation)

    def _played_around(self, position: int) -> NDArray[np.int8]:
        """Returns what may be audible now, and drops what is older."""
        start = position - _COMPARED - _LATE
        old = min(max(0, start - self._first), len(self._played))
        self._played = self._played[old:]
        self._first += old
        region = np.zeros(_REGION, np.int8)
        at = self._first - start
        known = self._played[: max(0, _REGION - at)]
        region[at : at + len(known)] = known
        return region


def _emphasize(samples: NDArray[np.int8] | Samples) -> Signal:
    """Attenuates the low frequencies, which are the strongest and similar in all voices."""
    signal = samples.astype(np.float32)
    signal[1:] -= _EMPHASIS * signal[:-1]
    return signal


def _gain(heard: Signal, played: Signal, delay: int) -> float:
    """Returns the level relative to what was played then and shortly before."""
    source = played[max(0, delay - _REVERB) : delay + len(heard)]
    return float(np.sqrt(np.square(heard).mean() / (np.square(source).mean() + 1e-6)))


def _correlate(heard: Signal, played: Signal) -> Signal:
    """Returns the normalised correlation at all delays, the longest first. 1 is a copy."""
    size = len(played)
    products = np.fft.irfft(np.fft.rfft(played) * np.conj(np.fft.rfft(heard, size)), size)[: size - len(heard) + 1]
    energy = np.concatenate([[0.0], np.cumsum(np.square(played, dtype=np.float64))])
    energies = energy[len(heard) :] - energy[: -len(heard)]
    # Near-silence has so little energy that normalising by it would make it correlate with everything.
    scale = np.sqrt(np.maximum(energies, energies.max() / 1000) * np.square(heard).sum())
    return np.abs(products) / (scale + 1e-9)  # type: ignore[no-any-return]
