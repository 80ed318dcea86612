"""Sound at another rate."""

import numpy as np
import soxr  # type: ignore[import-untyped]

from antiphon.audio.pcm import AudioError
from antiphon.sound_format import SAMPLE_BYTES


class Resampler:
    """For sound that comes in pieces: PCM16, mono. It holds some 20 to 60 ms back until more, or the last, comes."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        if from_hz <= 0 or to_hz <= 0:
            raise AudioError(f"Sound cannot be brought from {from_hz} Hz to {to_hz} Hz. A rate is more than 0.")
        self._stream = None if from_hz == to_hz else soxr.ResampleStream(from_hz, to_hz, 1, dtype="int16")
        self._half = b""

    def push(self, pcm: bytes, *, last: bool = False) -> bytes:
        """A piece may end within a sample; the next begins there. After the last one begins a new sound."""
        if self._half:
            pcm = self._half + pcm
        whole = len(pcm) - len(pcm) % SAMPLE_BYTES
        self._half = b"" if last else pcm[whole:]
        if self._stream is None:
            return pcm[:whole]
        samples: bytes = self._stream.resample_chunk(np.frombuffer(pcm[:whole], np.int16), last=last).tobytes()
        if last:
            self._stream.clear()
        return samples


def resample(pcm: bytes, from_hz: int, to_hz: int) -> bytes:
    """All of a sound at once."""
    return Resampler(from_hz, to_hz).push(pcm, last=True)
