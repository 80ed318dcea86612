"""Reads Wyoming events from a peer that may be faulty or hostile.

The package's own reader accepts as many bytes as the peer announces, cannot tell garbage from the end of the stream,
and raises four kinds of exceptions for JSON that is not an event. The package still defines and writes the events.
"""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta, Struct
from wyoming.event import Event

from antiphon.audio.pcm import FULL_SCALE, from_signal
from antiphon.audio.resample import Resampler

MAX_DATA_BYTES: Final = 1024 * 1024
"""The limit for a line, and for the JSON after it. The description of a few hundred voices takes a tenth of it."""
MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
PIECE_BYTES: Final = 32 * 1024
"""How much audio is processed at a time: a few milliseconds of work."""
GOES_ON: Final = "goes_on"
"""A key in the context of a `synthesize` event between two Antiphons: the text continues an answer being heard."""


class MalformedEvent(ValueError):
    """The peer sent something that is not a complete event."""


class _Head(Struct, frozen=True):
    type: str
    data: dict[str, Any] | None = None
    data_length: Annotated[int, Meta(ge=0, le=MAX_DATA_BYTES)] | None = None
    payload_length: Annotated[int, Meta(ge=0, le=MAX_PAYLOAD_BYTES)] | None = None


class AudioFormat(Struct, frozen=True):
    """The format in an `audio-start` or `audio-chunk`."""

    rate: Annotated[int, Meta(ge=8_000, le=192_000)]
    width: Annotated[int, Meta(ge=1, le=4)]
    """Bytes per sample. One byte is unsigned, more are signed and little-endian, as in a WAV file."""
    channels: Annotated[int, Meta(ge=1, le=8)]


async def read_event(reader: asyncio.StreamReader) -> Event | None:
    """Reads an event; None at the end of the stream. Raises `MalformedEvent`. The reader's limit must be
    `MAX_DATA_BYTES`."""
    try:
        line = await reader.readline()
        if not line:
            return None
        head = msgspec.json.decode(line, type=_Head)
        data = head.data or {}
        if head.data_length:
            data |= msgspec.json.decode(await reader.readexactly(head.data_length), type=dict[str, Any])
        payload = await reader.readexactly(head.payload_length) if head.payload_length else None
    except (ValueError, RecursionError, asyncio.IncompleteReadError) as error:
        raise MalformedEvent("no Wyoming event") from error
    return Event(head.type, data, payload)


def read_format(event: Event) -> AudioFormat:
    """Raises `MalformedEvent`."""
    try:
        return msgspec.convert(event.data, AudioFormat)
    except msgspec.ValidationError as error:
        raise MalformedEvent(f"an {event.type} without a format that we know ({error})") from error


def chunks(audio: bytes | None) -> Iterator[bytes]:
    for begin in range(0, len(audio or b""), PIECE_BYTES):
        yield (audio or b"")[begin : begin + PIECE_BYTES]


class AudioConverter:
    """Converts audio of any format to PCM16 mono at one rate. It holds about 60 ms back until the next piece."""

    def __init__(self, audio_format: AudioFormat, to_hz: int) -> None:
        self._format = audio_format
        self._resampler = Resampler(audio_format.rate, to_hz)
        self._part = b""
        """The beginning of a frame that the next piece completes."""

    def push(self, audio: bytes, *, last: bool = False) -> bytes:
        frame_bytes = self._format.width * self._format.channels
        audio = self._part + audio
        whole = len(audio) - len(audio) % frame_bytes
        self._part = audio[whole:]
        return self._resampler.push(_to_pcm16_mono(audio[:whole], self._format), last=last)


def _to_pcm16_mono(audio: bytes, audio_format: AudioFormat) -> bytes:
    width, channels = audio_format.width, audio_format.channels
    if (width, channels) == (2, 1):
        return audio
    # The two highest bytes of each sample are its 16-bit value.
    columns = np.frombuffer(audio, np.uint8).reshape(-1, width)
    if width == 1:
        samples = (columns[:, 0].astype(np.int16) - 128) << 8
    else:
        samples = np.ascontiguousarray(columns[:, -2:]).view("<i2")[:, 0]
    mono = samples.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    return from_signal(mono / np.float32(FULL_SCALE))
