"""What the machine wants done. The runner does it, in order."""

from dataclasses import dataclass

from antiphon.models.live import Timings, ToolAnswer
from antiphon.protocol.server_messages import QueuedText
from antiphon.session.state import Phase
from antiphon.tools.call import ToolCall


@dataclass(frozen=True, slots=True)
class Say:
    """The client is told the state."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class TellInterim:
    text: str


@dataclass(frozen=True, slots=True)
class KeepUser:
    """The user's turn is stored, and then told as final: what a client has seen as final is never lost."""

    text: str
    spoken: bool
    goes_on: bool = False
    """It takes the place of the last one, of which it is the whole."""
    timings: Timings | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """The model is given a turn to answer."""

    text: str
    ran: tuple[ToolAnswer, ...] = ()
    """What was done for this turn by a process that did not live to answer it."""


@dataclass(frozen=True, slots=True)
class EndAudio:
    """The model is told that no more audio comes for now."""


@dataclass(frozen=True, slots=True)
class TellChunk:
    text: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class TellAudio:
    turn: int
    seq: int
    pcm: bytes
    text: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class KeepAnswer:
    """The answer is stored as far as it was heard; kept again under the same turn, it replaces what was stored."""

    turn: int
    text: str
    is_whole: bool = False
    """It is stored with what the client is then told of it: the whole answer, after its chunks."""


@dataclass(frozen=True, slots=True)
class TellQueue:
    """The client is told which typed messages wait."""

    queue: tuple[QueuedText, ...]


@dataclass(frozen=True, slots=True)
class RunTools:
    turn: int
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """The model stops making the answer, and its tools that can be stopped are."""

    turn: int
    heard: str | None
    """What the model remembers of its words; None: all of them, since they were read as they came."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A `Tick` is wanted at this time."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over: metrics, deferred ends, what waits for a quiet moment."""

    turn: int


@dataclass(frozen=True, slots=True)
class Save:
    """How the session stands has changed: that is stored for the process that may have to go on with it."""


@dataclass(frozen=True, slots=True)
class TellError:
    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class StartVoice:
    """The client wants to talk: a model is to listen, and then the session does."""


@dataclass(frozen=True, slots=True)
class Warn:
    text: str


Effect = (
    Say
    | TellInterim
    | KeepUser
    | Ask
    | EndAudio
    | TellChunk
    | TellAudio
    | TellQueue
    | KeepAnswer
    | RunTools
    | Silence
    | Wake
    | EndTurn
    | Save
    | TellError
    | StartVoice
    | Warn
)
