"""The form of all sound here, PCM16 mono little-endian, and its rates. The wire and the engines both build on it."""

from struct import Struct
from typing import Final

SAMPLE_BYTES: Final = 2
MICROPHONE_HZ: Final = 16_000
"""What clients send, and what voice activity detection, turn detection and recognisers expect."""
SPEECH_HZ: Final = 22_050
"""What clients are sent."""

_WAV_HEADER: Final = Struct("<4sI4s4sIHHIIHH4sI")
WAV_HEADER_BYTES: Final = _WAV_HEADER.size


def write_wav(pcm: bytes, hz: int) -> bytes:
    """The sound as a WAV file."""
    header = _WAV_HEADER.pack(
        *(b"RIFF", WAV_HEADER_BYTES - 8 + len(pcm), b"WAVE"),
        *(b"fmt ", 16, 1, 1, hz, hz * SAMPLE_BYTES, SAMPLE_BYTES, 8 * SAMPLE_BYTES),
        *(b"data", len(pcm)),
    )
    return header + pcm
