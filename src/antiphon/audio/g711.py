"""G.711, the 8 kHz formats of telephony: µ-law (PCMU) and A-law (PCMA), each one byte a sample.

numpy is imported where it is used: a server for text alone does without it.
"""

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

G711_HZ: Final = 8_000

_BIAS: Final = 0x84
_CLIP: Final = 32_635


@cache
def _ulaw_table() -> "NDArray[np.int16]":
    import numpy as np

    codes = ~np.arange(256, dtype=np.int32) & 0xFF
    exponent, mantissa = (codes >> 4) & 7, codes & 0xF
    magnitude = (((mantissa << 3) + _BIAS) << exponent) - _BIAS
    return np.where(codes & 0x80, -magnitude, magnitude).astype(np.int16)


@cache
def _alaw_table() -> "NDArray[np.int16]":
    import numpy as np

    codes = np.arange(256, dtype=np.int32) ^ 0x55
    exponent, mantissa = (codes >> 4) & 7, codes & 0xF
    magnitude = np.where(exponent == 0, (mantissa << 4) + 8, ((mantissa << 4) + 0x108) << np.maximum(exponent - 1, 0))
    return np.where(codes & 0x80, magnitude, -magnitude).astype(np.int16)


def decode_ulaw(data: bytes) -> bytes:
    """Returns PCM16."""
    return _decode(data, _ulaw_table())


def decode_alaw(data: bytes) -> bytes:
    """Returns PCM16."""
    return _decode(data, _alaw_table())


def encode_ulaw(pcm: bytes) -> bytes:
    """Takes PCM16."""
    import numpy as np

    samples = np.frombuffer(pcm, np.int16).astype(np.int32)
    magnitude = np.minimum(np.abs(samples), _CLIP) + _BIAS
    exponent = np.maximum(np.floor(np.log2(magnitude)).astype(np.int32) - 7, 0)
    codes = (exponent << 4) | ((magnitude >> (exponent + 3)) & 0xF) | np.where(samples < 0, 0x80, 0)
    return bytes((~codes & 0xFF).astype(np.uint8))


def encode_alaw(pcm: bytes) -> bytes:
    """Takes PCM16."""
    import numpy as np

    samples = np.frombuffer(pcm, np.int16).astype(np.int32)
    magnitude = np.minimum(np.where(samples < 0, ~samples, samples), 32_767)
    exponent = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 7, 0)
    mantissa = np.where(exponent == 0, magnitude >> 4, magnitude >> np.maximum(exponent + 3, 4)) & 0xF
    codes = (exponent << 4) | mantissa | np.where(samples < 0, 0, 0x80)
    return (codes ^ 0x55).astype(np.uint8).tobytes()


def _decode(data: bytes, table: "NDArray[np.int16]") -> bytes:
    import numpy as np

    return table[np.frombuffer(data, np.uint8)].tobytes()
