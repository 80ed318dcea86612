"""What a client reports besides the server's messages: changes of its connection, and errors."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.errors import AntiphonError
from antiphon.protocol.server_messages import ConfirmationRequest, ServerMessage, SpeechFrame

if TYPE_CHECKING:
    from antiphon.client.answers import Answer


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The connection is lost, and the client tries to reconnect. Reported once, however many attempts it takes."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session was resumed. The missed messages follow, and then the state."""

    session_id: str
    n: int
    """The number of the `session` message: messages with lower numbers were missed, those with higher ones are new."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """The client is connected again, but in a new session: the turn in progress is lost."""

    session_id: str
    reason: str


Event = Reconnecting | Resumed | NewSession
Incoming = ServerMessage | SpeechFrame | Event


class ClientError(AntiphonError):
    code = "client"


class Disconnected(ClientError):
    """There is no connection any more, or it could not be opened."""

    code = "disconnected"

    def __init__(self, message: str, *, close_code: int | None = None, come_back: bool) -> None:
        super().__init__(message)
        self.close_code = close_code
        """None if no connection was opened."""
        self.come_back = come_back
        """Whether another attempt may succeed."""


class Untrusted(Disconnected):
    """The server's certificate is not trusted, so nothing was sent to it."""

    code = "untrusted"


class TurnLost(ClientError):
    """The connection was lost, and the typed message will not be answered."""

    code = "turn_lost"

    def __init__(self) -> None:
        super().__init__("The connection was lost before your message was answered. Send it again.")


class NoAnswer(ClientError):
    """A question was sent or spoken, and no answer came in time."""

    code = "no_answer"


class AnswerFailed(ClientError):
    """The server could not answer; the text is its own, for the user."""

    code = "answer_failed"

    def __init__(self, message: str, *, code: str, retryable: bool, answer: "Answer") -> None:
        super().__init__(message)
        self.error_code = code
        """One of the error codes of the protocol."""
        self.retryable = retryable
        """Whether another attempt may succeed."""
        self.answer = answer
        """What had arrived of the answer."""


class ConfirmationNeeded(ClientError):
    """A tool does nothing before somebody approves its call, and `ask` was not told how to decide."""

    code = "confirmation_needed"

    def __init__(self, request: ConfirmationRequest) -> None:
        super().__init__(
            f"{request.tool} waits for approval: {request.preview} Nothing was done. Give `ask` a function `confirm` "
            "that decides, or call `resolve` with the `request` of this error."
        )
        self.request = request
