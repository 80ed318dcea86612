"""What can happen to a session: the client's messages, the model's events, and a few events of its own."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from antiphon.models import live
from antiphon.models.live import ToolAnswer
from antiphon.protocol import client_messages as c
from antiphon.tools.spec import Mode


@dataclass(frozen=True, slots=True)
class ListeningStopped:
    """The client has sent `stop_listening`."""

    has_speech: bool
    """Whether the model was sent speech that it has not answered."""


@dataclass(frozen=True, slots=True)
class QueueReady:
    """No turn is under way, so a queued message may begin one."""


@dataclass(frozen=True, slots=True)
class TurnRestored:
    """Another process has left this turn of the user without an answer. It is stored, and the client knows of it."""

    turn: str
    text: str
    ran: tuple[ToolAnswer, ...] = ()
    """The calls that were already run for it."""
    heard: tuple[str, ...] = ()
    """Words of its answer that the client has as audio."""
    last_seq: int = -1
    """The last piece of audio that the client has of it."""


@dataclass(frozen=True, slots=True)
class ClientBack:
    """The client has come back, and still has to get this much of the answer's audio."""

    missing_ms: int


@dataclass(frozen=True, slots=True)
class SpeechLost:
    """The audio of the rest of the answer is gone, and the client has not heard it. The model says the words again."""

    text: str
    ms: int
    """How long the lost audio was."""


@dataclass(frozen=True, slots=True)
class PlaybackAssumed:
    """The answer counts as played, whatever time it takes: this client does not report playback."""


@dataclass(frozen=True, slots=True)
class TurnAbandoned:
    """The turn cannot go on because of a fault of the server."""

    message: str
    code: str
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The session has a model of this mode now."""

    mode: Mode
    listening: bool = False


@dataclass(frozen=True, slots=True)
class SessionSpeaks:
    """The session begins a turn by itself: a greeting, a reminder, a farewell, the outcome of a call."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The timer that the machine has asked for has run out."""


Event = (
    c.ClientMessage
    | live.LiveEvent
    | ListeningStopped
    | QueueReady
    | TurnRestored
    | ClientBack
    | SpeechLost
    | PlaybackAssumed
    | TurnAbandoned
    | ModeChanged
    | SessionSpeaks
    | Tick
)

Work = Callable[[], Coroutine[object, object, None]]
"""Something that the session's own task does, so that nothing else changes the session meanwhile."""
