"""The error for an invalid frame, and the codes of `error` messages."""

from enum import StrEnum

from antiphon.errors import AntiphonError


class ErrorCode(StrEnum):
    """What an `error` is about. The connection stays open, except after the codes that say "closes"."""

    BAD_JSON = "bad_json"
    """The text is not valid JSON. NaN, Infinity, half of a surrogate pair and very deep nesting are not allowed."""
    UNKNOWN_TYPE = "unknown_type"
    """The type is unknown or missing."""
    BAD_MESSAGE = "bad_message"
    """A field is missing or invalid; the message says which. Nothing was done."""
    BAD_SETTINGS = "bad_settings"
    """A setting is out of range or has the wrong type. No setting was changed."""
    BAD_AUDIO = "bad_audio"
    """A binary frame has no samples, or half a sample. It was dropped."""
    TOO_LARGE = "too_large"
    """A text, a list or a frame is too long."""
    HELLO_LATE = "hello_late"
    """`hello` must be the first message. This one was ignored."""
    RESUME_REJECTED = "resume_rejected"
    """The handle is unknown, used, expired or another user's. A new session follows."""
    UNKNOWN_CONVERSATION = "unknown_conversation"
    """This user has no such conversation. The session stays in the current one."""
    BUSY = "busy"
    """Too many typed messages are waiting, so this one was refused. Send it again after the answer."""
    MODEL_FAILED = "model_failed"
    """The model cannot be reached, or it refused. The turn is over."""
    UNAVAILABLE = "unavailable"
    """The database cannot be used right now, so the message was refused. Try again in a moment."""
    CONVERSATION_GONE = "conversation_gone"
    """The conversation was deleted elsewhere. The session continues in a new one; a `session` message follows."""
    NOT_RECORDED = "not_recorded"
    """This server does not record calls, so `record` was ignored."""
    ALWAYS_RECORDED = "always_recorded"
    """This server records every call, so recording cannot be turned off."""
    INTERNAL = "internal"
    """An error in the server. The turn is over."""
    UNAUTHENTICATED = "unauthenticated"
    """The token is missing or invalid. Closes."""
    BLOCKED = "blocked"
    """This user is blocked for now. Closes."""
    TOO_FAST = "too_fast"
    """Too many messages or too much audio. It was dropped. Closes if it continues."""


class ProtocolError(AntiphonError):
    """An invalid frame. The text can be sent to the client as it is."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self._code = code

    @property
    def code(self) -> ErrorCode:  # type: ignore[override]  # elsewhere a class has one code; here a frame does
        return self._code
