"""The close codes of the server, each with a reason for people.

Only 1000 ends the session. After any other code the session is parked, and can be resumed if `come_back` is true.
"""

from typing import Final

from msgspec import Struct

from antiphon.protocol.limits import AUDIO_BURST_S, HELLO_LIMIT_S, MAX_FRAME_BYTES


class Close(Struct, frozen=True):
    code: int
    reason: str
    """At most 123 bytes, which is all that a close frame can hold."""
    come_back: bool
    """Whether the client should reconnect with the same credentials, after the usual backoff."""


NORMAL: Final = Close(1000, "the session is over", False)
BAD_UTF8: Final = Close(1007, "a text frame is not UTF-8", True)
TOO_LARGE: Final = Close(1009, f"a frame is larger than {MAX_FRAME_BYTES // 1024} KiB", True)
INTERNAL: Final = Close(1011, "an error of the server; the session can be resumed", True)
RESTARTING: Final = Close(1012, "the server restarts; the session can be resumed", True)
FULL: Final = Close(1013, "too many connections; try again later", True)

# Codes from 4000 on belong to the application. These end in the HTTP status with the same meaning.
UNAUTHENTICATED: Final = Close(4401, "a valid token is required", False)
BLOCKED: Final = Close(4403, "this user is blocked for now", False)
NO_HELLO: Final = Close(4408, f"no hello within {HELLO_LIMIT_S} seconds", False)
TAKEN_OVER: Final = Close(4409, "another connection has taken over this session", False)
TOO_SLOW: Final = Close(4413, "too much is waiting to be read by this client", True)
TOO_FAST: Final = Close(4429, f"messages come too fast, or audio is more than {AUDIO_BURST_S} s ahead of speech", True)

CLOSES: Final = (
    NORMAL,
    BAD_UTF8,
    TOO_LARGE,
    INTERNAL,
    RESTARTING,
    FULL,
    UNAUTHENTICATED,
    BLOCKED,
    NO_HELLO,
    TAKEN_OVER,
    TOO_SLOW,
    TOO_FAST,
)
