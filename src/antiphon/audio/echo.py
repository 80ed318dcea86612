"""Knows the assistant's own voice again when the microphone hears it from the loudspeaker."""

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.audio.pcm import Samples, Signal
from antiphon.audio.resample import Resampler, resample
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES, SPEECH_HZ

HEARD: Final = 4_096
"""Samples of the microphone that are compared, at its rate: a quarter of a second."""
LIKE: Final = 0.35
"""Of a hundred times, another voice once comes to more, by chance, at any delay."""
CERTAIN: Final = 0.5
"""From then on the loudspeaker is known."""
AS_USUAL: Final = 0.6
"""Of its usual likeness. Somebody who speaks besides leaves less of it; a quiet passage in a good room does not."""
TRACE: Final = 0.12
"""At its usual delay, of a sound that is not `LOUDER_DB` above the usual echo: a room can leave as little. With less
than that the echo may be gone, because the client has learnt to take it out, and it is a quiet person."""
LOUDER_DB: Final = 4.0

# Voices differ enough below 4 kHz, at a byte a sample. An answer is sent faster than it is played, so the rest of a
# long one waits here.
_KEPT_HZ: Final = 8_000
_NEW_BYTES: Final = 3 * SAMPLE_BYTES * SPEECH_HZ
# The client may say late that it plays, and loudspeakers, wireless ones most of all, take their time.
_EARLY: Final = 2_048
_LATE: Final = 6_144
_COMPARED: Final = HEARD * _KEPT_HZ // MICROPHONE_HZ
_REGION: Final = _LATE + _COMPARED + _EARLY
_JITTER: Final = _KEPT_HZ // 500
# The room still sounds of what was played before.
_LINGERING: Final = _KEPT_HZ // 8
_STEADY: Final = 0.8
_EMPHASIS: Final = np.float32(0.8)


@dataclass(frozen=True, slots=True)
class _Loudspeaker:
    """As it was when it was certain: the last delay, and the usual gain and likeness."""

    delay: int
    gain: float
    likeness: float


class Echo:
    """The answer that one session is hearing."""

    def __init__(self) -> None:
        self._played: NDArray[np.int8] = np.zeros(0, np.int8)
        self._new: deque[tuple[bytes, Resampler]] = deque()
        """Pieces as they were sent, and what makes them smaller: most answers are heard out, and nothing is compared
        with them."""
        self._new_bytes = 0
        self._first = 0
        self._hz = _KEPT_HZ
        self._resampler = Resampler(_KEPT_HZ, _KEPT_HZ)
        self._loudspeaker: _Loudspeaker | None = None

    def add(self, pcm: bytes, hz: int) -> None:
        """The next piece of the answer, in the order in which it is sent."""
        if hz != self._hz:
            self._resampler, self._hz = Resampler(hz, _KEPT_HZ), hz
        self._new.append((pcm, self._resampler))
        self._new_bytes += len(pcm)
        self._keep(at_most=_NEW_BYTES)

    def is_in(self, heard: Samples, position: int) -> bool:
        """Whether the last `HEARD` samples of the microphone are what was playing.

        `position` says how many samples, at the microphone's rate, the client has been playing for. The level plays
        no part until the loudspeaker is known: a bar that keeps an echo out keeps quiet people out too, most of whom
        have no echo at all.
        """
        self._keep(at_most=0)
        region = self._around(position * _KEPT_HZ // MICROPHONE_HZ)
        if not region.any():
            return False
        compared = _emphasize(np.frombuffer(resample(heard.tobytes(), MICROPHONE_HZ, _KEPT_HZ), np.int16))
        played = _emphasize(region)
        likeness = _likeness(compared, played)
        known, delay = self._loudspeaker, int(likeness.argmax())
        if likeness[delay] >= CERTAIN:
            self._learn(delay, _gain(compared, played, delay), float(likeness[delay]))
        if known is None:
            return bool(likeness[delay] >= LIKE)
        if likeness[delay] >= AS_USUAL * known.likeness:
            return True
        is_louder = _gain(compared, played, known.delay) >= known.gain * 10 ** (LOUDER_DB / 20)
        trace = likeness[max(0, known.delay - _JITTER) : known.delay + _JITTER].max()
        return bool(not is_louder and trace >= TRACE)

    def _keep(self, at_most: int) -> None:
        """Makes the oldest pieces smaller, until no more bytes than that are left as they were."""
        while self._new_bytes > at_most:
            pcm, resampler = self._new.popleft()
            self._new_bytes -= len(pcm)
            samples = np.frombuffer(resampler.push(pcm), np.int16)
            coarse = np.rint(samples / 256).clip(-128, 127).astype(np.int8)
            self._played = np.concatenate([self._played, coarse])

    def _learn(self, delay: int, gain: float, likeness: float) -> None:
        if known := self._loudspeaker:
            gain = _STEADY * known.gain + (1 - _STEADY) * gain
            likeness = _STEADY * known.likeness + (1 - _STEADY) * likeness
        self._loudspeaker = _Loudspeaker(delay, gain, likeness)

    def _around(self, position: int) -> NDArray[np.int8]:
        """What may be heard about now. What is older is forgotten."""
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
    """The low tones of any two voices are alike, and they are the strongest."""
    signal = samples.astype(np.float32)
    signal[1:] -= _EMPHASIS * signal[:-1]
    return signal


def _gain(heard: Signal, played: Signal, delay: int) -> float:
    """How loud it is beside what was played then, and shortly before."""
    source = played[max(0, delay - _LINGERING) : delay + len(heard)]
    return float(np.sqrt(np.square(heard).mean() / (np.square(source).mean() + 1e-6)))


def _likeness(heard: Signal, played: Signal) -> Signal:
    """The normalised correlation at all delays, the longest first: 1 is a copy."""
    size = len(played)
    products = np.fft.irfft(np.fft.rfft(played) * np.conj(np.fft.rfft(heard, size)), size)[: size - len(heard) + 1]
    energy = np.concatenate([[0.0], np.cumsum(np.square(played, dtype=np.float64))])
    energies = energy[len(heard) :] - energy[: -len(heard)]
    # A stretch of near silence is like nothing. Its own small energy would make it like everything.
    scale = np.sqrt(np.maximum(energies, energies.max() / 1000) * np.square(heard).sum())
    return np.abs(products) / (scale + 1e-9)  # type: ignore[no-any-return]
