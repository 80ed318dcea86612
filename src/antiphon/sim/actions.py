"""What a fault does: one small type per action, and the name by which a script asks for it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

MAX_REASON_BYTES: Final = 123
"""The longest reason that a WebSocket's close frame can carry."""

Seconds = Annotated[float, Meta(ge=0, le=86_400)]
CloseCode = Annotated[int, Meta(ge=1000, le=4999)]
HttpStatus = Annotated[int, Meta(ge=300, le=599)]


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a simulator does and that its client must cope with."""


class Alteration(Action, frozen=True):
    """It changes the message that triggered it or, if that does not fit, the next one that does."""


class Refuse(Action, frozen=True):
    """Answers the upgrade, or the request, with an HTTP status instead."""

    status: HttpStatus = 429
    body: str | None = None
    """The body; by default the provider's own for this status."""
    retry_after_s: Annotated[int, Meta(ge=0)] | None = None


class Close(Action, frozen=True):
    """Closes the socket with a code and a reason."""

    code: CloseCode = 1011
    reason: str = ""


class Then(StrEnum):
    CONTINUE = "continue"
    """The conversation goes on until the time is over; then the socket is closed."""
    SILENCE = "silence"
    """Nothing is sent or read any more, and the socket stays open."""
    VANISH = "vanish"
    """The conversation goes on until the time is over; then nothing is sent or read any more, and no close comes."""
    CLOSE = "close"
    """The socket is closed at once, without waiting for the time to pass."""


class GoAway(Action, frozen=True):
    """Announces that the connection will end."""

    seconds_left: Seconds = 10.0
    then: Then = Then.CONTINUE


class Expire(Action, frozen=True):
    """Ends the connection now, as the provider does at its time limit."""


class Quota(Action, frozen=True):
    """Ends the connection because a quota is exhausted, as the provider does."""


class HandleProblem(StrEnum):
    EXPIRED = "expired"
    FOREIGN = "foreign"


class RejectHandle(Action, frozen=True):
    """Refuses the handle that the client resumes with."""

    problem: HandleProblem = HandleProblem.EXPIRED


class SlowPongs(Action, frozen=True):
    """Answers each ping only after this time."""

    seconds: Seconds


class NoPongs(Action, frozen=True):
    """Answers no ping."""


class Silence(Action, frozen=True):
    """Sends nothing and reads nothing any more; the socket stays open."""


class Stall(Action, frozen=True):
    """Holds back everything that the server sends for a time, and then delivers it."""

    seconds: Seconds | None = None
    """None is for ever."""


class Reset(Action, frozen=True):
    """Resets the TCP connection, without a close frame."""


class Send(Action, frozen=True):
    """Sends a message of your own to the client."""

    message: dict[str, Any]


class DuplicateToolCall(Action, frozen=True):
    """Sends the session's latest tool call once more."""

    new_id: bool = False


class Greet(Action, frozen=True):
    """Speaks without having been asked, as models do that greet again after a resumption."""

    text: str = "Hello! How can I help you?"


class TwoResponses(Action, frozen=True):
    """Sends a whole second response in the middle of the first."""

    text: str = "By the way, this is another answer."


class Replay(Action, frozen=True):
    """Sends the session's latest answer once more, as providers do that replay items after a resumption."""


class Drop(Alteration, frozen=True):
    """Loses the message."""


class Malformed(Alteration, frozen=True):
    """Sends only the first half of the message's text, which is then not JSON."""


class HalfFrame(Alteration, frozen=True):
    """Sends half of the frame, or line, and then resets the TCP connection."""


class ToolCallWithoutId(Alteration, frozen=True):
    """Removes the id of a tool call."""


class CancelToolCall(Alteration, frozen=True):
    """Cancels a tool call right after it was sent."""


class SpeechAndToolCall(Alteration, frozen=True):
    """Adds speech to a response that calls a tool."""

    text: str = "Let me see."


class ErrorLine(Action, frozen=True):
    """Ends a stream with a line that is an error, after status 200."""

    message: str = "an error was encountered while running the model"


class TextStyle(StrEnum):
    FENCED = "fenced"
    TOOL_CALL = "tool_call"
    TOOLS = "tools"


class ToolCallAsText(Alteration, frozen=True):
    """Writes a tool call as text, as small models do."""

    style: TextStyle = TextStyle.FENCED


SHARED_ACTIONS: Final[Mapping[str, type[Action]]] = {
    "refuse": Refuse,
    "stall": Stall,
    "silence": Silence,
    "reset": Reset,
    "send": Send,
    "drop": Drop,
    "malformed": Malformed,
    "half_frame": HalfFrame,
    "tool_call_without_id": ToolCallWithoutId,
}
"""What every simulator can do."""

SOCKET_ACTIONS: Final[Mapping[str, type[Action]]] = {
    **SHARED_ACTIONS,
    "close": Close,
    "expire": Expire,
    "quota": Quota,
    "slow_pongs": SlowPongs,
    "no_pongs": NoPongs,
    "duplicate_tool_call": DuplicateToolCall,
    "cancel_tool_call": CancelToolCall,
    "speech_and_tool_call": SpeechAndToolCall,
    "two_responses": TwoResponses,
    "greet": Greet,
    "replay": Replay,
}
"""What every simulator with a WebSocket can do."""

GEMINI_ACTIONS: Final[Mapping[str, type[Action]]] = {
    **SOCKET_ACTIONS,
    "go_away": GoAway,
    "reject_handle": RejectHandle,
}
OPENAI_ACTIONS: Final = SOCKET_ACTIONS
OLLAMA_ACTIONS: Final[Mapping[str, type[Action]]] = {
    **SHARED_ACTIONS,
    "error_line": ErrorLine,
    "tool_call_as_text": ToolCallAsText,
}
