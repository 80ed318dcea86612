"""G.711, the 8 kHz formats of telephony: µ-law (PCMU) and A-law (PCMA), each one byte a sample."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

G711_HZ: Final = 8_000

_BIAS: Final = 0x84
_CLIP: Final = 32_635


def _ulaw_table() -> NDArray[np.int16]:
    codes = ~np.arange(256, dtype=np.int32) & 0xFF
    exponent, mantissa = (codes >> 4) & 7, codes & 0xF
    magnitude = (((mantissa << 3) + _BIAS) << exponent) - _BIAS
    return np.where(codes & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw_table() -> NDArray[np.int16]:
    codes = np.arange(256, dtype=np.int32) ^ 0x55
    exponent, mantissa = (codes >> 4) & 7, codes & 0xF
    magnitude = np.where(exponent == 0, (mantissa << 4) + 8, ((mantissa << 4) + 0x108) << np.maximum(exponent - 1, 0))
    return np.where(codes & 0x80, magnitude, -magnitude).astype(np.int16)


_ULAW: Final = _ulaw_table()
_ALAW: Final = _alaw_table()


def decode_ulaw(data: bytes) -> bytes:
    """Returns PCM16."""
    return _ULAW[np.frombuffer(data, np.uint8)].tobytes()


def decode_alaw(data: bytes) -> bytes:
    """Returns PCM16."""
    return _ALAW[np.frombuffer(data, np.uint8)].tobytes()


def encode_ulaw(pcm: bytes) -> bytes:
    """Takes PCM16."""
    samples = np.frombuffer(pcm, np.int16).astype(np.int32)
    magnitude = np.minimum(np.abs(samples), _CLIP) + _BIAS
    exponent = np.maximum(np.floor(np.log2(magnitude)).astype(np.int32) - 7, 0)
    codes = (exponent << 4) | ((magnitude >> (exponent + 3)) & 0xF) | np.where(samples < 0, 0x80, 0)
    return bytes((~codes & 0xFF).astype(np.uint8))


def encode_alaw(pcm: bytes) -> bytes:
    """Takes PCM16."""
    samples = np.frombuffer(pcm, np.int16).astype(np.int32)
    magnitude = np.minimum(np.where(samples < 0, ~samples, samples), 32_767)
    exponent = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 7, 0)
    mantissa = np.where(exponent == 0, magnitude >> 4, magnitude >> np.maximum(exponent + 3, 4)) & 0xF
    codes = (exponent << 4) | mantissa | np.where(samples < 0, 0, 0x80)
    return (codes ^ 0x55).astype(np.uint8).tobytes()
