"""What a client tells its caller besides the server's messages: changes of its connection, and errors."""

from dataclasses import dataclass

from antiphon.errors import AntiphonError
from antiphon.protocol.server_messages import ServerMessage, SpeechFrame


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The connection is gone; it is tried again until it is back. Told once, however many tries it takes."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session goes on. What was missed follows, and then the state."""

    session_id: str
    n: int
    """The number of the session's introduction: lower ones repeat what was missed, higher ones are new."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """The connection is back, but the session is another one: what was under way is lost."""

    session_id: str
    reason: str


Event = Reconnecting | Resumed | NewSession
Incoming = ServerMessage | SpeechFrame | Event


class ClientError(AntiphonError):
    code = "client"


class Disconnected(ClientError):
    """There is no connection, or none any more."""

    code = "disconnected"

    def __init__(self, message: str, *, close_code: int | None = None, come_back: bool) -> None:
        super().__init__(message)
        self.close_code = close_code
        """None if there was no connection to close."""
        self.come_back = come_back
        """Whether the same may succeed another time."""


class TurnLost(ClientError):
    """The connection broke, and what was typed will not be answered: it never arrived, or its session is gone."""

    code = "turn_lost"

    def __init__(self) -> None:
        super().__init__("The connection broke before your message was answered. Send it again.")
