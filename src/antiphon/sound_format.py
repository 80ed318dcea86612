"""The audio format, PCM16 mono little-endian, with its sample rates and settings, for the protocol and the engines."""

from struct import Struct
from typing import Final

SAMPLE_BYTES: Final = 2
MICROPHONE_HZ: Final = 16_000
"""The rate that clients send, and that voice activity detection, turn detection and recognisers expect."""
SPEECH_HZ: Final = 22_050
"""The rate that clients receive."""

MIN_VOICE_SPEED: Final = 50
MAX_VOICE_SPEED: Final = 200
MAX_VOLUME: Final = 100
"""The settings of a voice, in percent."""

_WAV_HEADER: Final = Struct("<4sI4s4sIHHIIHH4sI")
WAV_HEADER_BYTES: Final = _WAV_HEADER.size


def write_wav(pcm: bytes, hz: int) -> bytes:
    """Returns the sound as a WAV file."""
    header = _WAV_HEADER.pack(
        *(b"RIFF", WAV_HEADER_BYTES - 8 + len(pcm), b"WAVE"),
        *(b"fmt ", 16, 1, 1, hz, hz * SAMPLE_BYTES, SAMPLE_BYTES, 8 * SAMPLE_BYTES),
        *(b"data", len(pcm)),
    )
    return header + pcm
