"""What is in a recording of a call, and how well it matches what was said."""

import io
from typing import Final

import numpy as np
import soundfile  # type: ignore[import-untyped]
from numpy.typing import NDArray

from antiphon.audio.resample import resample

HZ: Final = 24_000
"""The rate of recordings."""

Signal = NDArray[np.float64]


def decode(content: bytes) -> NDArray[np.int16]:
    """The frames of a recording: the user's samples, and the assistant's."""
    frames, hz = soundfile.read(io.BytesIO(content), dtype="int16", always_2d=True)
    assert hz == HZ
    decoded: NDArray[np.int16] = frames
    return decoded


def find(said: bytes, hz: int, channel: NDArray[np.int16]) -> tuple[float, float]:
    """Where a sound is in a channel, in seconds, and how well it matches there: 1 is perfect."""
    sound: Signal = np.frombuffer(resample(said, hz, HZ), np.int16).astype(float)
    heard = channel.astype(float)
    size = 1 << (len(heard) + len(sound)).bit_length()
    spectrum = np.fft.rfft(heard, size) * np.conj(np.fft.rfft(sound, size))
    correlation = np.fft.irfft(spectrum, size)[: max(1, len(heard) - len(sound) + 1)]
    at = int(np.argmax(correlation))
    found = heard[at : at + len(sound)]
    power = float(np.linalg.norm(found) * np.linalg.norm(sound[: len(found)]))
    return at / HZ, float(correlation[at]) / power if power else 0.0


def level(channel: NDArray[np.int16]) -> float:
    """The loudness of a piece of a channel: 0 is silence."""
    return float(np.sqrt(np.mean(channel.astype(float) ** 2))) if len(channel) else 0.0
