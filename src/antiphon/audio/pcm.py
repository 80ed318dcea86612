"""Samples: PCM16, mono, little-endian, as bytes or as numbers between -1 and 1."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES

FRAME_SAMPLES: Final = 512
"""The frame of voice activity detection."""
FRAME_MS: Final = FRAME_SAMPLES * 1000 // MICROPHONE_HZ
FRAME_BYTES: Final = FRAME_SAMPLES * SAMPLE_BYTES
FULL_SCALE: Final = 32_768
SILENCE_DBFS: Final = -100.0
"""The level of silence. The quietest sound in PCM16 has -90."""

Samples = NDArray[np.int16]
Signal = NDArray[np.float32]


def to_samples(pcm: bytes | Samples) -> Samples:
    """Returns a view of the samples. Half a sample at the end is dropped."""
    return np.frombuffer(pcm, np.int16, len(pcm) // SAMPLE_BYTES) if isinstance(pcm, bytes) else pcm


def to_signal(pcm: bytes | Samples) -> Signal:
    return to_samples(pcm).astype(np.float32) / np.float32(FULL_SCALE)


def from_signal(signal: Signal) -> bytes:
    """Converts to PCM16, clipping what is beyond full scale."""
    scaled = np.rint(signal * np.float32(FULL_SCALE))
    samples: Samples = np.clip(scaled, -FULL_SCALE, FULL_SCALE - 1).astype(np.int16)
    return samples.tobytes()


def duration_ms(pcm: bytes, hz: int) -> int:
    return len(pcm) // SAMPLE_BYTES * 1000 // hz


def level_dbfs(pcm: bytes | Samples) -> float:
    """Returns the RMS level: 0 is a square wave at full scale, `SILENCE_DBFS` is silence or an empty buffer."""
    signal = to_signal(pcm)
    if not signal.size:
        return SILENCE_DBFS
    power = float(np.dot(signal, signal)) / signal.size
    return max(SILENCE_DBFS, 10 * float(np.log10(power))) if power else SILENCE_DBFS
