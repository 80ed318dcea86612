"""What can happen to a session: the client's messages, the model's events, and time."""

from dataclasses import dataclass

from antiphon.models.live import Timings, ToolAnswer
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode


@dataclass(frozen=True, slots=True)
class StartListening:
    pass


@dataclass(frozen=True, slots=True)
class StopListening:
    heard_speech: bool
    """Whether the model has been sent speech that it has not answered."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    played_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PlaybackDone:
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Playback:
    turn: int
    played_ms: int


@dataclass(frozen=True, slots=True)
class TextMessage:
    text: str


@dataclass(frozen=True, slots=True)
class Unqueue:
    """The user takes back a typed message that waits."""

    id: str


@dataclass(frozen=True, slots=True)
class NextQueued:
    """The turn is over: what waits may begin."""


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Another process has left this turn of the user without an answer. It is stored, and the client was told of it."""

    text: str
    ran: tuple[ToolAnswer, ...] = ()
    """What was done for it already."""
    heard: tuple[str, ...] = ()
    """Words of its answer that the client has as sound."""
    last_seq: int = -1
    """The last piece of audio that the client has of it."""


@dataclass(frozen=True, slots=True)
class ClientBack:
    """The client has come back, and has this much of the answer's audio still to get."""

    missing_ms: int


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The turn cannot go on, by a fault of the server."""

    message: str
    code: str
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The session has got a model of the other mode."""

    mode: Mode
    listening: bool = False


@dataclass(frozen=True, slots=True)
class SpeakFirst:
    """The server speaks of its own accord: a greeting, a reminder, a farewell, an answer to a pending request."""


@dataclass(frozen=True, slots=True)
class Heard:
    text: str
    is_final: bool
    goes_on: bool = False
    """It is the turn before it, whose answer was dropped, and more."""
    waits: bool = False
    """The model does not answer before it is asked."""
    timings: Timings | None = None


@dataclass(frozen=True, slots=True)
class Said:
    text: str


@dataclass(frozen=True, slots=True)
class Voiced:
    """Audio of the answer, ready to be sent."""

    pcm: bytes
    ms: int
    text: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class ToolsWanted:
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class BargedIn:
    """The user speaks while the answer is made or played."""


@dataclass(frozen=True, slots=True)
class Made:
    """The answer has been made whole."""


@dataclass(frozen=True, slots=True)
class TurnOver:
    """The model is done with this turn, with or without an answer."""


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class Lost(Failed):
    """There is no model any more, whatever it was doing."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A timer that the machine has asked for."""


Event = (
    StartListening
    | StopListening
    | Interrupt
    | PlaybackDone
    | Playback
    | TextMessage
    | Unqueue
    | NextQueued
    | TakenUp
    | ClientBack
    | GivenUp
    | ModeChanged
    | SpeakFirst
    | Heard
    | Said
    | Voiced
    | ToolsWanted
    | BargedIn
    | Made
    | TurnOver
    | Failed
    | Lost
    | Tick
)
