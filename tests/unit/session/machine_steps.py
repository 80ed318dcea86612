"""A session's state machine as tests drive it: events of a conversation, and the effects that they should have."""

from collections.abc import Callable

from antiphon.models.live import (
    GenerationComplete,
    Held,
    InputTranscript,
    Interrupted,
    OutputAudio,
    OutputText,
    Resumed,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.protocol.server_messages import QueuedText
from antiphon.session import events as e
from antiphon.session.effects import (
    AnswerSpeech,
    BeginTurn,
    Effect,
    Respond,
    Send,
    StoreUser,
)
from antiphon.session.machine import step
from antiphon.session.state import Phase, SessionState
from antiphon.tools.spec import Mode

IDLE, LISTENING, PROCESSING, SPEAKING = Phase.IDLE, Phase.LISTENING, Phase.PROCESSING, Phase.SPEAKING
LISTENS = e.ModeChanged(Mode.VOICE, listening=True)
"""The effects of a model that starts to listen."""

OfTurn = Callable[[str], e.Event]
"""A text event of the current turn."""


def said(text: str) -> OfTurn:
    return lambda turn: OutputText(turn, text)


def speech(mark: bytes, ms: int) -> bytes:
    return mark * (SPEECH_HZ * ms // 1000 + 1)


def spoken(mark: bytes, ms: int, text: str, *, last: bool = False) -> OfTurn:
    return lambda turn: OutputAudio(turn, speech(mark, ms), text, last)


def made() -> OfTurn:
    return GenerationComplete


def over() -> OfTurn:
    return TurnComplete


def barged_in() -> OfTurn:
    return Interrupted


def held() -> OfTurn:
    return Held


def resumed() -> OfTurn:
    return Resumed


def failed(message: str) -> OfTurn:
    return lambda turn: TurnFailed(turn, message)


def tell(phase: Phase) -> Effect:
    return Send(s.StateChanged(s.State(phase)))


def queue(*messages: QueuedText) -> Effect:
    return Send(s.Queued(messages), stored_first=True)


def failure(message: str) -> Effect:
    return Send(s.Error(message, "model_failed", retryable=True))


class Talk:
    """A session that handles one event after another."""

    def __init__(self, mode: Mode = Mode.VOICE) -> None:
        self.state = SessionState(mode=mode)
        self.now_ms = 1_000
        self.effects: list[Effect] = []

    def do(self, *events: e.Event | OfTurn, after_ms: int = 0) -> list[Effect]:
        """The effects of the last event."""
        self.now_ms += after_ms
        for event in events:
            happened = event("none" if self.state.turn is None else self.state.turn.id) if callable(event) else event
            self.state, effects = step(self.state, happened, self.now_ms)
            self.effects = list(effects)
        return self.effects

    def hear(self, text: str, turn: str = "m1", continues: str | None = None) -> list[Effect]:
        """All effects of a user turn and its transcript."""
        return [*self.do(TurnStarted(turn, continues)), *self.do(InputTranscript(turn, text, is_final=True))]

    @property
    def phase(self) -> Phase:
        return self.state.phase


def heard(text: str, turn: str = "m1", number: int = 1) -> list[Effect]:
    """The effects of a final transcript."""
    return [StoreUser(turn, number, text, spoken=True), AnswerSpeech(turn, text)]


def typed(text: str, number: int = 1) -> list[Effect]:
    """The effects of a typed message, after the state."""
    turn = f"s{number}"
    return [BeginTurn(turn), StoreUser(turn, number, text, spoken=False), Respond(turn, text)]
