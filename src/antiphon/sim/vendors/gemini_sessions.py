"""The sessions of the simulated Gemini Live: what outlives a connection, and the handles that resume it."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from antiphon.sim.vendors.base import CloseWith, Message
from antiphon.sim.vendors.gemini_models import INVALID_ARGUMENT, GeminiModel

MAX_HANDLES: Final = 10_000
MAX_ANSWER: Final = 1_000
"""How many messages of an answer are kept."""
MAX_SESSIONS: Final = 1_000
"""How many sessions the control port can show."""
STILL_OPEN: Final = CloseWith(1011, "Internal error encountered.")
DEAD_HANDLE: Final = CloseWith(1008, "BidiGenerateContent session not found")
FOREIGN_HANDLE: Final = CloseWith(1007, "Invalid session handle")


@dataclass(slots=True)
class SentCall:
    """A tool call that the client was sent."""

    call: Message
    is_settled: bool = False
    """Whether it was answered or cancelled."""


@dataclass(slots=True)
class Session:
    """What outlives a connection: the calls, and which connection is open."""

    number: int
    family: str
    calls: OrderedDict[str, SentCall] = field(default_factory=OrderedDict)
    aliases: dict[str, str] = field(default_factory=dict)
    """Ids under which calls were repeated, and the ids that the endpoint knows them by."""
    last_ids: list[str] = field(default_factory=list)
    """The ids of the latest message with calls."""
    answer: list[Message] = field(default_factory=list)
    """The messages of the latest answer."""
    connection: int | None = None
    ended_s: float | None = None

    def note_content(self, message: Message) -> None:
        """A part of an answer is sent to the client."""
        if self.answer and self.answer[-1]["serverContent"].get("turnComplete"):
            self.answer = []
        if len(self.answer) < MAX_ANSWER:
            self.answer.append(message)


class Sessions:
    """All sessions of a simulator. A handle works for `handle_s` seconds after the end of its session."""

    def __init__(self, now_s: Callable[[], float], handle_s: float) -> None:
        self._now_s = now_s
        self._handle_s = handle_s
        self._sessions: deque[Session] = deque(maxlen=MAX_SESSIONS)
        self._handles: OrderedDict[str, Session] = OrderedDict()
        self._numbers = count(1)

    def begin(self, family: str, connection: int) -> Session:
        session = Session(next(self._numbers), family, connection=connection)
        self._sessions.append(session)
        return session

    def end(self, session: Session) -> None:
        """The session's connection has ended."""
        session.connection, session.ended_s = None, self._now_s()

    def issue(self, handle: str, session: Session) -> None:
        self._handles[handle] = session
        if len(self._handles) > MAX_HANDLES:
            self._handles.popitem(last=False)

    def find(self, handle: str, model: GeminiModel) -> Session | CloseWith:
        """Returns the session of a handle, or how the provider refuses it."""
        session = self._handles.get(handle)
        if session is None:
            return FOREIGN_HANDLE
        if session.connection is not None:
            return STILL_OPEN
        if session.family != model.family:
            return INVALID_ARGUMENT
        age_s = self._now_s() - (session.ended_s or 0.0)
        return DEAD_HANDLE if age_s > self._handle_s else session

    def describe(self) -> list[Message]:
        handles = list(self._handles.values())
        return [
            {
                "session": each.number,
                "model_family": each.family,
                "connection": each.connection,
                "handles": sum(owner is each for owner in handles),
                "open_calls": [call_id for call_id, sent in each.calls.items() if not sent.is_settled],
            }
            for each in self._sessions
        ]
