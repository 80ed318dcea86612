"""What the wire allows. A sender that keeps to these is never refused for size or form."""

from typing import Final

from antiphon import sound_format

MAX_FRAME_BYTES: Final = 64 * 1024
"""One frame from a client, text or audio. The server closes the connection on a longer one (`closing.TOO_LARGE`)."""
HELLO_LIMIT_S: Final = 10
"""Seconds from the handshake to `hello`, where the server asks for a token."""
AUDIO_BURST_S: Final = 30
"""Seconds of microphone audio that may come faster than speech."""
MICROPHONE_HZ: Final = sound_format.MICROPHONE_HZ
SPEECH_HZ: Final = sound_format.SPEECH_HZ

MAX_TEXT: Final = 8_000
"""Characters of a typed message, and of each message that a client brings along."""
MAX_PENDING_REQUEST: Final = 200
MAX_INITIAL_MESSAGES: Final = 100
MAX_NAME: Final = 64
"""Characters of the name of a theme or a voice."""
MAX_CLIENT: Final = 128
MAX_ID: Final = 128
MAX_SECRET: Final = 512
"""Characters of a token or a handle."""

MIN_VOICE_SPEED: Final = 50
MAX_VOICE_SPEED: Final = 200
MAX_VOLUME: Final = 100

MAX_NUMBER: Final = 2**32 - 1
"""Of messages, turns and pieces of audio: they are 32 bits wide in binary frames."""
MAX_PLAYED_MS: Final = 24 * 60 * 60 * 1000


def speech_ms(pcm: bytes) -> int:
    """How long a piece of outgoing speech lasts."""
    return len(pcm) * 1000 // (2 * SPEECH_HZ)
