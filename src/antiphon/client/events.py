"""What a client is told besides the server's messages: how it fares with its connection."""

from dataclasses import dataclass

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
