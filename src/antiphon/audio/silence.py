"""Detects where speech stops by its level alone: at once, where a voice activity model needs two or three frames."""

from typing import Final

import numpy as np

from antiphon.audio.pcm import to_signal

SILENCE_DROP_DB: Final = 35.0
"""How far below the recent speech level a frame must fall to count as silence.

Within a sentence that happens twice, mostly before a "t" or a "k"; with 30 dB three times, with 25 dB four times, and
the end is detected 9 and 18 ms sooner. In a noisy room no frame falls so far."""
RECOVERY_DB: Final = 0.5
"""How fast the speech level decays, per frame: soft speech after a shout counts again within a second or two."""

_SILENCE_RATIO: Final = 10 ** (-SILENCE_DROP_DB / 10)
_RECOVERY: Final = 10 ** (-RECOVERY_DB / 10)


class SilenceDetector:
    """Compares each frame of one audio stream with the recent speech level."""

    def __init__(self) -> None:
        self._recent_power = 0.0
        """The power of the loudest recent frame, decaying."""

    def is_silent(self, frame: bytes) -> bool:
        """Whether this frame is silence, compared with the frames before it."""
        signal = to_signal(frame)
        power = float(np.dot(signal, signal))
        self._recent_power = max(power, self._recent_power * _RECOVERY)
        return power < self._recent_power * _SILENCE_RATIO
