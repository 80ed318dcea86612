"""What the machine wants done. The runner does it, in order."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Ask:
    """The model is given a typed turn."""

    text: str


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


@dataclass(frozen=True, slots=True)
class TellAnswer:
    """The whole answer, after its chunks."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class KeepAnswer:
    """The answer is stored as far as it was heard; kept again under the same turn, it replaces what was stored."""

    turn: int
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RunTools:
    turn: int
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """The model stops making the answer, and its tools that can be stopped are."""

    turn: int


@dataclass(frozen=True, slots=True)
class Wake:
    """A `Tick` is wanted at this time."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over: metrics, deferred ends, what waits for a quiet moment."""

    turn: int


@dataclass(frozen=True, slots=True)
class TellError:
    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class StartVoice:
    """The client wants to talk, and the session is in text."""


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
    | TellAnswer
    | KeepAnswer
    | RunTools
    | Silence
    | Wake
    | EndTurn
    | TellError
    | StartVoice
    | Warn
)
