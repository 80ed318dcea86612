"""What the machine wants done. The runner does it, in order."""

from dataclasses import dataclass

from antiphon.models.live import Timings, ToolAnswer
from antiphon.protocol.server_messages import ServerMessage
from antiphon.tools.call import ToolCall


@dataclass(frozen=True, slots=True)
class Send:
    message: ServerMessage
    stored_first: bool = False
    """Whether the message is stored before it is sent, so that what the client has seen is never lost."""


@dataclass(frozen=True, slots=True)
class SendAudio:
    number: int
    seq: int
    pcm: bytes
    text: str
    last: bool = False
    is_filler: bool = False


@dataclass(frozen=True, slots=True)
class BeginTurn:
    """A turn of the user begins: tools get a new budget and, unless it continues another, a new idempotency turn."""

    turn: str
    spoken: bool = False
    continues: str | None = None
    completes: str | None = None
    """`TurnStarted.completes`."""


@dataclass(frozen=True, slots=True)
class StoreUser:
    """The user's words are stored, and then sent as final: what a client has seen as final is never lost."""

    turn: str
    number: int
    text: str
    spoken: bool
    timings: Timings | None = None


@dataclass(frozen=True, slots=True)
class AnswerSpeech:
    """The words of a spoken turn are known. A model that waits to answer is asked to; for any other model it is checked
    whether the words approve a call."""

    turn: str
    text: str


@dataclass(frozen=True, slots=True)
class Respond:
    """The model is asked to answer a turn that it did not hear itself."""

    turn: str
    text: str
    ran: tuple[ToolAnswer, ...] = ()
    """Calls that were run for this turn by a process that did not live to answer it."""


@dataclass(frozen=True, slots=True)
class SayAgain:
    """The model is asked to say these words of an answer, whose audio the client has missed."""

    turn: str
    text: str


@dataclass(frozen=True, slots=True)
class EndAudio:
    """The model is told that no more audio comes for now: what it has heard is this turn."""

    turn: str


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """The answer is stored as far as it was heard; stored again for the same turn, it replaces what was stored."""

    turn: str
    number: int
    text: str
    is_whole: bool = False
    """Whether the client is then sent the whole answer, after its chunks."""


@dataclass(frozen=True, slots=True)
class RunTools:
    turn: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class CancelCalls:
    """The model no longer wants the results of these calls."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InterruptModel:
    """The model stops making the answer, and its tools are stopped where they can be."""

    turn: str
    heard: str | None
    """What the user heard of the answer; None if it was read as it came."""
    played_ms: int | None = None
    """How much of its audio was played, if the client has said so."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """A `Tick` is wanted at this time."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over: metrics are sent, and what waited for its end is done."""

    number: int


@dataclass(frozen=True, slots=True)
class Save:
    """The state has changed in a way that another process must know if it takes the session over."""


@dataclass(frozen=True, slots=True)
class StartVoice:
    """The client wants to talk: a model that listens is connected, and then the session listens."""


@dataclass(frozen=True, slots=True)
class LogIgnored:
    """Something came that has no meaning in this state."""

    what: str


Effect = (
    Send
    | SendAudio
    | BeginTurn
    | StoreUser
    | AnswerSpeech
    | Respond
    | SayAgain
    | EndAudio
    | StoreAnswer
    | RunTools
    | CancelCalls
    | InterruptModel
    | SetTimer
    | EndTurn
    | Save
    | StartVoice
    | LogIgnored
)
