"""Reads WAV files of any common format as PCM16 mono."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

import numpy as np

from antiphon.audio import AudioError
from antiphon.audio.pcm import Signal, from_signal

_RIFF: Final = Struct("<4sI4s")
_CHUNK: Final = Struct("<4sI")
_FORMAT: Final = Struct("<HHIIHH")
_INTEGER: Final = 1
_FLOAT: Final = 3
_EXTENSIBLE: Final = 0xFFFE
_SUBFORMAT: Final = slice(24, 26)
"""Where an extensible format stores the actual format tag."""


def read_wav(source: bytes | Path) -> tuple[bytes, int]:
    """Returns PCM16 mono and its rate. Channels are mixed. Raises `AudioError`.

    Integers of 8, 16, 24 and 32 bits and 32-bit floats can be read. A truncated file is read as far as it goes.
    """
    name = "This sound"
    if isinstance(source, Path):
        name = str(source)
        try:
            source = source.read_bytes()
        except OSError as error:
            raise AudioError(f"{name} cannot be read: {error.strerror}.") from error
    chunks = dict(_chunks(source, name))
    form, data = chunks.get(b"fmt ", b""), chunks.get(b"data")
    if len(form) < _FORMAT.size or data is None:
        raise AudioError(f"{name} is a damaged WAV file: it has no sound, or does not say in which format.")
    tag, channels, hz, _, _, bits = _FORMAT.unpack_from(form)
    if tag == _EXTENSIBLE:
        tag = int.from_bytes(form[_SUBFORMAT], "little")
    if not channels or not hz:
        raise AudioError(f"{name} is a damaged WAV file: it has {channels} channels at {hz} Hz.")
    whole = len(data) - len(data) % (channels * max(1, bits // 8))
    signal = _decode(data[:whole], tag, bits)
    if signal is None:
        raise AudioError(f"{name} has an unsupported format. Save it as a WAV file with 16-bit PCM.")
    return from_signal(signal.reshape(-1, channels).mean(axis=1)), hz


def _chunks(file: bytes, name: str) -> Iterator[tuple[bytes, bytes]]:
    if len(file) < _RIFF.size or (file[:4], file[8:12]) != (b"RIFF", b"WAVE"):
        raise AudioError(f"{name} is not a WAV file.")
    at = _RIFF.size
    while at + _CHUNK.size <= len(file):
        kind, size = _CHUNK.unpack_from(file, at)
        at += _CHUNK.size
        yield kind, file[at : at + size]
        at += size + size % 2


def _decode(data: bytes, tag: int, bits: int) -> Signal | None:
    if (tag, bits) == (_FLOAT, 32):
        floats: Signal = np.nan_to_num(np.frombuffer(data, "<f4"))
        return floats
    if tag != _INTEGER or bits not in (8, 16, 24, 32):
        return None
    if bits == 8:
        # The only width that has no sign.
        integers = np.frombuffer(data, np.uint8).astype(np.int32) - 128
    elif bits == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        integers = wide.view("<i4")[:, 0] >> 8
    else:
        integers = np.frombuffer(data, f"<i{bits // 8}")
    return integers.astype(np.float32) / np.float32(2 ** (bits - 1))
