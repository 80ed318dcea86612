"""A session as the gate sees it: who calls, in which mode, in which turn, with which tools."""

from dataclasses import dataclass, field
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from antiphon.storage.base import CallRecord
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Messaging, SessionView
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.intents import StateController
from antiphon.tools.messages import Message
from antiphon.tools.policy import Ledger
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import ToolResult
from antiphon.tools.spec import Mode

FORESEEN_FOR_S: Final = 2.0
"""What a tool would have said this long ago, it may not say any more: the time has gone on."""


class Foreseen(Struct, frozen=True):
    """The result of a call that has not been made yet."""

    result: ToolResult
    at_s: float


class NoClient:
    """The messaging of a session that nobody listens to."""

    async def send(self, message: Message) -> None:
        raise ToolError(ErrorType.TRANSIENT, "No client is connected.", retryable=True)


@dataclass(slots=True)
class ToolSession:
    """Its owner sets the mode and begins the turns; the gate reads it and keeps the turn's ledger."""

    id: str
    user: str
    snapshot: Snapshot
    mode: Mode = Mode.TEXT
    authenticated: bool = False
    active: bool = True
    turn: int = 0
    """The user's turns. A redelivered or replayed message does not advance it."""
    pinned_version: str = ""
    """Of the tools that the session knows of; another than the snapshot's if it was begun on another process."""
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    messaging: Messaging = field(default_factory=NoClient)
    state: StateController = field(default_factory=StateController)
    ledger: Ledger = field(default_factory=Ledger)
    unheard: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)
    """Results of actions that outlived their turn; to be told in the next one."""
    left: dict[str, CallRecord] = field(default_factory=dict)
    """Runs that another process has begun for this session and that nobody has told of, by the ids of their records."""
    foreseen: dict[str, Foreseen] = field(default_factory=dict)
    """By tool and arguments: what calls would give that the next turn will probably make."""

    _view: SessionView | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.pinned_version = self.pinned_version or self.snapshot.version

    def view(self, mode: Mode) -> SessionView:
        """The session as a handler sees it; the calls of a turn share one."""
        view = self._view
        if view is None or view.turn != self.turn or view.mode is not mode or view.active is not self.active:
            self._view = view = SessionView(self.id, self.user, mode, self.active, self.turn, self.zone)
        return view

    def take_foreseen(self, fingerprint: str, now_s: float) -> ToolResult | None:
        """What was foreseen of such a call, if it is fresh. All that is not is forgotten."""
        self.foreseen = {key: each for key, each in self.foreseen.items() if now_s - each.at_s <= FORESEEN_FOR_S}
        found = self.foreseen.pop(fingerprint, None)
        return None if found is None else found.result

    def facts(self, environment: str) -> dict[str, Any]:
        """What an availability expression can ask about."""
        return {
            "mode": str(self.mode),
            "environment": environment,
            "user": {"id": self.user, "authenticated": self.authenticated},
            "session": {"id": self.id, "active": self.active, "turn": self.turn},
        }
