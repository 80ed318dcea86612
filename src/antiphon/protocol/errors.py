"""What can be wrong with a client's message, and the codes that an `error` message carries."""

from enum import StrEnum

from antiphon.errors import AntiphonError


class ErrorCode(StrEnum):
    """What an `error` is about. The connection goes on after each of them, but for those that say "closes"."""

    BAD_JSON = "bad_json"
    """The text is not JSON: broken, NaN or Infinity in it, half of a surrogate pair, or nested too deeply."""
    UNKNOWN_TYPE = "unknown_type"
    """There is no such message, or it has no type."""
    BAD_MESSAGE = "bad_message"
    """A field is missing or has a wrong value; the message says which. Nothing of it was done."""
    BAD_SETTINGS = "bad_settings"
    """A setting is out of range or of a wrong kind; none was applied."""
    BAD_AUDIO = "bad_audio"
    """A binary frame holds no sample, or half of one. It was dropped."""
    TOO_LARGE = "too_large"
    """A text, a list or a frame is longer than the limits allow."""
    HELLO_LATE = "hello_late"
    """`hello` must be the first message; this one was ignored."""
    RESUME_REJECTED = "resume_rejected"
    """The handle is unknown, used, expired or another user's. A fresh session follows."""
    UNKNOWN_CONVERSATION = "unknown_conversation"
    """This user has no such conversation; the session stays where it is."""
    BUSY = "busy"
    """Too many typed messages wait already; this one was not taken. Send it again when the answer is there."""
    MODEL_FAILED = "model_failed"
    """The model cannot be reached or refuses; the turn is over."""
    UNAVAILABLE = "unavailable"
    """What is stored cannot be read or written now; the message was not taken. Try again in a moment."""
    CONVERSATION_GONE = "conversation_gone"
    """The conversation was deleted elsewhere. The session goes on in a new one; its `session` message follows."""
    INTERNAL = "internal"
    """A fault of the server; the turn is over."""
    UNAUTHENTICATED = "unauthenticated"
    """No valid token: closes."""
    BLOCKED = "blocked"
    """This user is refused until the block is over: closes."""
    TOO_FAST = "too_fast"
    """More messages or audio than the pace allows. It was dropped; going on like this closes."""


class ProtocolError(AntiphonError):
    """A frame that means nothing. Its text can be sent back to the client as it is."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self._code = code

    @property
    def code(self) -> ErrorCode:  # type: ignore[override]  # elsewhere a class has one code; here a frame does
        return self._code
