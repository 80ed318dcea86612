"""Changes the speed of speech without changing its pitch."""

from typing import Final

import numpy as np

from antiphon.audio import AudioError
from antiphon.audio.pcm import Signal, from_signal, to_signal
from antiphon.sound_format import SAMPLE_BYTES

SLOWEST: Final = 0.25
FASTEST: Final = 4.0
WINDOW_MS: Final = 30
"""Long enough for two or three periods of a low voice."""
SEARCH_MS: Final = 10
"""How far a window may be shifted: one period of a voice at 100 Hz."""


class Tempo:
    """Processes PCM16 mono piece by piece. It holds about 60 ms back until the next piece or the end.

    The method is WSOLA: windows are overlapped at new distances, each shifted to where it best continues the last.
    """

    def __init__(self, speed: float, hz: int) -> None:
        if not SLOWEST <= speed <= FASTEST:
            raise AudioError(f"Speech cannot be {speed} times as fast. Choose a speed from {SLOWEST} to {FASTEST}.")
        self._speed = speed
        self._hop = hz * WINDOW_MS // 2_000
        self._search = hz * SEARCH_MS // 1_000
        # Two of these, half a window apart, add up to one everywhere.
        self._shape: Signal = np.hanning(2 * self._hop + 1)[:-1].astype(np.float32)
        self._input: Signal = np.zeros(0, np.float32)
        """What may still be needed: from where the next window may begin, at the earliest."""
        self._first = 0
        """The place of its first sample in the whole sound."""
        self._ideal = 0.0
        """Where the next window would begin if nothing had to fit."""
        self._tail: Signal | None = None
        """The second half of the last window, which the next one is laid over."""
        self._follows: Signal = self._input
        """What came after the first half of the last window in the sound itself: the next one should be like it."""
        self._half = b""

    def push(self, pcm: bytes, *, last: bool = False) -> bytes:
        """Processes a piece, which may end within a sample. Nothing may be pushed after the last piece."""
        if self._speed == 1.0:
            return pcm
        pcm = self._half + pcm
        whole = len(pcm) - len(pcm) % SAMPLE_BYTES
        self._half = pcm[whole:]
        self._input = np.concatenate([self._input, to_signal(pcm[:whole])])
        end = self._first + self._input.size
        if last:
            self._input = np.concatenate([self._input, np.zeros(self._search + 3 * self._hop, np.float32)])
        spoken = [np.zeros(0, np.float32)]
        while self._ideal < end and (begin := self._next_window()) is not None:
            spoken.append(self._overlap_add(begin))
        return from_signal(np.concatenate(spoken))

    def _next_window(self) -> int | None:
        """Returns where in the input the next window begins; None if more input is needed."""
        window = 2 * self._hop
        ideal = round(self._ideal) - self._first
        earliest = max(ideal - self._search, 0)
        latest = ideal + self._search
        # Half a window more than is laid: what follows it is compared with the one after.
        if latest + window + self._hop > self._input.size:
            return None
        if self._tail is None:
            return ideal
        region = self._input[earliest : latest + window]
        correlation = np.correlate(region, self._follows, "valid")
        # Normalised by power, or the loudest position would win.
        power = np.convolve(region * region, np.ones(window, np.float32), "valid")
        return earliest + int(np.argmax(correlation / np.sqrt(power + 1e-6)))

    def _overlap_add(self, begin: int) -> Signal:
        window = 2 * self._hop
        shaped = self._input[begin : begin + window] * self._shape
        # Nothing comes before the first window, so it begins at full height.
        head = self._input[begin : begin + self._hop] if self._tail is None else self._tail + shaped[: self._hop]
        self._tail = shaped[self._hop :]
        self._follows = self._input[begin + self._hop : begin + self._hop + window]
        self._ideal += self._hop * self._speed
        done = min(max(round(self._ideal) - self._search - self._first, 0), self._input.size)
        self._input = self._input[done:]
        self._first += done
        return np.asarray(head, np.float32)
