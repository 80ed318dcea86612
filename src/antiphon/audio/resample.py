"""Changes the sample rate."""

from typing import Any

from antiphon.audio import AudioError
from antiphon.sound_format import SAMPLE_BYTES


class Resampler:
    """Resamples PCM16 mono piece by piece. It holds 20 to 60 ms back until the next piece or the end."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        if from_hz <= 0 or to_hz <= 0:
            raise AudioError(
                f"Audio cannot be resampled from {from_hz} Hz to {to_hz} Hz. A rate must be greater than 0."
            )
        self._stream: Any = None
        if from_hz != to_hz:
            self._load(from_hz, to_hz)
        self._half = b""

    def push(self, pcm: bytes, *, last: bool = False) -> bytes:
        """Resamples a piece, which may end within a sample. What follows the last piece is a new sound."""
        if self._half:
            pcm = self._half + pcm
        whole = len(pcm) - len(pcm) % SAMPLE_BYTES
        self._half = b"" if last else pcm[whole:]
        if self._stream is None:
            return pcm[:whole]
        samples: bytes = self._stream.resample_chunk(self._read(pcm[:whole], self._int16), last=last).tobytes()
        if last:
            self._stream.clear()
        return samples

    def _load(self, from_hz: int, to_hz: int) -> None:
        # Imported only here: a server for text alone does without these libraries.
        try:
            import numpy as np
            import soxr  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            message = (
                f"Audio needs the package {error.name}, which is not installed. Run: pip install 'antiphon[local]'"
            )
            raise AudioError(message) from error
        self._read, self._int16 = np.frombuffer, np.int16
        self._stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="int16")


def resample(pcm: bytes, from_hz: int, to_hz: int) -> bytes:
    """Resamples a whole sound at once."""
    return Resampler(from_hz, to_hz).push(pcm, last=True)
