"""Evidence that somebody really speaks to the assistant while its answer plays."""

from collections import deque
from math import ceil, inf
from typing import Final

import numpy as np

from antiphon.audio.echo import HEARD, Echo
from antiphon.audio.errors import AudioError
from antiphon.audio.pcm import FULL_SCALE, Samples, to_samples
from antiphon.audio.vad import FRAME_SAMPLES, HZ

ENDED: Final = 0.3
"""Below this probability of speech, what was heard so far is over."""
SPEECH: Final = 0.5
SURE: Final = 0.85
"""Real hums and coughs seldom come so far; speech does within a tenth of a second."""
ENOUGH: Final = 3
"""Frames of speech, if the mouth was open in one of them."""
LONG: Final = 20
"""Frames, 0.64 s: nobody hums that long, whatever it sounds like."""
OPEN_DB: Final = -12.0
QUIETER_DB: Final = 3.0


class BargeIn:
    """For one session: `hear` every frame while an answer may be playing, and `reset` before the next answer."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._echo = Echo()
        self._played = 0
        self._recent = deque([_SILENCE] * _COMPARED, _COMPARED)
        self._forget()

    def played(self, pcm: bytes, hz: int) -> None:
        """The next piece of the answer, as it is sent: it may be sent long before it is heard."""
        self._echo.add(pcm, hz)

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        """Whether to interrupt the answer.

        The probability is the `Vad`'s, and `playing` says whether the client was playing when it heard this frame.
        """
        samples = to_samples(frame)
        if len(samples) != FRAME_SAMPLES:
            raise AudioError(f"A frame of speech has {FRAME_SAMPLES} samples, not {len(samples)}.")
        self._recent.append(samples)
        self._played += FRAME_SAMPLES * playing
        if probability < ENDED:
            self._forget()
            return False
        self._weigh(probability, samples)
        if self._frames < (ENOUGH if self._is_open else LONG):
            return False
        if playing and self._echo.is_in(np.concatenate(self._recent), self._played):
            self._forget()
            return False
        return True

    def _forget(self) -> None:
        self._frames = 0
        self._is_open = False
        self._closed_db = -inf
        """The level of the loudest frame so far that may come from a closed mouth."""

    def _weigh(self, probability: float, frame: Samples) -> None:
        power = np.square(np.abs(np.fft.rfft(frame * _WINDOW)))
        low_db, middle_db, high_db = (_to_db(power[band].sum()) for band in (_LOW, _MIDDLE, _HIGH))
        self._frames += probability >= SPEECH
        if max(middle_db, high_db) < low_db + OPEN_DB:
            self._closed_db = max(self._closed_db, low_db)
        # The breath between the halves of an "mm-hm" sounds open too, but it is quieter than they are.
        elif probability >= SURE and max(low_db, middle_db, high_db) >= self._closed_db - QUIETER_DB:
            self._is_open = True


def _band(from_hz: int, to_hz: int) -> slice:
    return slice(ceil(from_hz * FRAME_SAMPLES / HZ), ceil(to_hz * FRAME_SAMPLES / HZ))


def _to_db(power: float) -> float:
    return 10 * float(np.log10(power + 1e-9))


_COMPARED: Final = HEARD // FRAME_SAMPLES
_SILENCE: Final = np.zeros(FRAME_SAMPLES, np.int16)
_WINDOW: Final = (np.hanning(FRAME_SAMPLES) / FULL_SCALE).astype(np.float32)
# What an open mouth adds to the low tones of a closed one: the first formant of most vowels, or the upper formants and
# the hiss of the other sounds. In between, a closed mouth has a formant of its own.
_LOW: Final = _band(62, 450)
_MIDDLE: Final = _band(450, 1_000)
_HIGH: Final = _band(1_300, 8_000)
