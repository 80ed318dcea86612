"""Hears where a sound stops, by its loudness alone: at once, where a voice activity model needs two or three frames."""

from typing import Final

import numpy as np

from antiphon.audio.pcm import to_signal

DROP_DB: Final = 35.0
"""So much quieter than what was heard lately is what comes after it. In sentences there is such a frame twice, mostly
before a "t" or a "k"; with 30 dB it is three times, with 25 dB four times, and the ends are heard 9 and 18 ms sooner.
In a room that is too loud for it, there is none."""
RECOVERY_DB: Final = 0.5
"""A frame. Who speaks softly after a shout is heard again in a second or two."""

_DROP: Final = 10 ** (-DROP_DB / 10)
_RECOVERY: Final = 10 ** (-RECOVERY_DB / 10)


class Hush:
    """Of one voice."""

    def __init__(self) -> None:
        self._loudest = 0.0
        """The power of a loud frame, of late."""

    def hear(self, frame: bytes) -> bool:
        """Whether there is nothing in this frame, next to those before it."""
        signal = to_signal(frame)
        power = float(np.dot(signal, signal))
        self._loudest = max(power, self._loudest * _RECOVERY)
        return power < self._loudest * _DROP
