"""The limits of the protocol. Messages within them are never refused for their size."""

from typing import Final

from antiphon import sound_format

MAX_FRAME_BYTES: Final = 64 * 1024
"""The longest frame from a client, text or audio. A longer one closes the connection (`closing.TOO_LARGE`)."""
FRAME_LIMIT_EXTENSION: Final = "antiphon.frame_limit"
"""The extension of a WebSocket's scope whose `set` changes the longest frame of this connection, in bytes. Endpoints of
other protocols need it: their clients send audio as base64 in JSON, in pieces of any length."""
HELLO_LIMIT_S: Final = 10
"""How many seconds a client may take to send `hello` where the server requires a token."""
AUDIO_BURST_S: Final = 30
"""How many seconds of microphone audio may arrive faster than real time."""
MICROPHONE_HZ: Final = sound_format.MICROPHONE_HZ
SPEECH_HZ: Final = sound_format.SPEECH_HZ

MAX_TEXT: Final = 8_000
"""Characters of a typed message, and of each initial message."""
MAX_PENDING_REQUEST: Final = 200
MAX_INITIAL_MESSAGES: Final = 100
MAX_NAME: Final = 64
"""Characters of the name of a theme or a voice."""
MAX_CLIENT: Final = 128
MAX_FEATURES: Final = 16
MAX_ID: Final = 128
MAX_SECRET: Final = 512
"""Characters of a token or a handle."""

MAX_NUMBER: Final = 2**32 - 1
"""The highest number of a message, a turn or a piece of audio: they have 32 bits in binary frames."""
MAX_PLAYED_MS: Final = 24 * 60 * 60 * 1000


def speech_ms(pcm: bytes) -> int:
    """How long a piece of outgoing speech lasts."""
    return len(pcm) * 1000 // (2 * SPEECH_HZ)
