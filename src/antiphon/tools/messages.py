"""What a tool can send to the client while it runs, with `context.messaging.send`. The session puts it on the wire."""

from enum import StrEnum
from typing import Final, TypeGuard, get_args

from msgspec import Struct

from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ConfirmationRequest, Flyout


class NoticeKind(StrEnum):
    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


class Notice(Struct, frozen=True):
    """A short text that the page shows for a moment."""

    text: str
    kind: NoticeKind = NoticeKind.INFO
    duration_ms: int | None = None
    """How long to show it. None leaves it to the client."""


class Image(Struct, frozen=True):
    """A picture that was made or found."""

    url: str
    caption: str | None = None


class VoiceSessionStart(Struct, frozen=True):
    """Asks the client to go on by voice."""

    session_id: str
    pending_request: str | None
    """What will be answered first."""


class Timeout(Struct, frozen=True):
    """Blocks the user until a time. The server enforces it, whether or not the client takes notice."""

    until: int
    """Unix time in milliseconds."""
    duration_seconds: float
    message: str


Message = Notice | Image | Flyout | VoiceSessionStart | Timeout | ConfirmationRequest

MESSAGES: Final = get_args(Message)


def is_message(value: object) -> TypeGuard[Message]:
    return isinstance(value, MESSAGES)


def not_a_message(value: object, problem: str = "") -> ToolError:
    """Makes the error for a handler that sends something else, or a message with a wrong field."""
    names = ", ".join(kind.__name__ for kind in MESSAGES)
    what = f"an invalid {type(value).__name__} ({problem})" if problem else f"a {type(value).__name__}"
    return ToolError(
        ErrorType.INTERNAL,
        f"The tool sent {what}, which no client understands. Send one of {names} from antiphon.tools.messages.",
    )
