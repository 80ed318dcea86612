"""A session as the gate sees it: who calls, in which mode, in which turn, with which tools."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from antiphon.storage.base import CallRecord
from antiphon.telemetry.log import get_logger
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Messaging, SessionView
from antiphon.tools.errors import ClientToolError, ErrorType, ToolError
from antiphon.tools.messages import Message
from antiphon.tools.policy import Ledger
from antiphon.tools.registry import Snapshot
from antiphon.tools.result import VOICE_SPEEDS, VOLUMES, After, Intent, IntentType, ToolResult
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

PREFETCH_TTL_S: Final = 2.0
"""How long a prefetched result stays valid."""
MAX_PENDING_MESSAGE_CHARS: Final = 200
MAX_CLIENT_TOOLS: Final = 64
MESSAGES_HEARD: Final = 4
"""How many of the user's latest messages are kept, to find out what they have asked for: a request may be followed by
questions about it, and by the answers."""

log = get_logger(__name__)


class Prefetched(Struct, frozen=True):
    """The result of a call that the model has not made yet."""

    result: ToolResult
    at_s: float


class NoClient:
    """The messaging of a session without a client."""

    async def send(self, message: Message) -> None:
        raise ToolError(ErrorType.TRANSIENT, "No client is connected.", retryable=True)


@dataclass(slots=True)
class StateController:
    """The one way in which a tool's result changes a session: it holds what intents have asked for, and the session
    reads it and acts."""

    voice_active: bool = False
    ending: After | None = None
    """When the voice session is to end, once a tool has asked for it."""
    suppress_audio: bool = False
    suppress_transcript: bool = False
    pending_message: str | None = None
    voice_speed: int = 100
    volume: int = 80
    has_new_settings: bool = False
    """Whether a tool has changed the speed or the volume, and the session has not seen it yet."""

    def apply(self, intent: object) -> bool:
        """Applies an intent and returns whether it was valid. An invalid one is logged and changes nothing."""
        problem = self._apply(intent) if isinstance(intent, Intent) else "it is not an Intent"
        if problem is not None:
            # Not the whole intent, since its message is private.
            kind = intent.type if isinstance(intent, Intent) else type(intent).__name__
            log.warning("intent_refused", intent=kind, problem=problem)
        return problem is None

    def end_turn(self) -> None:
        """Resets what lasts for one turn only."""
        self.suppress_audio = False
        self.suppress_transcript = False

    def _apply(self, intent: Intent) -> str | None:
        """Applies the intent, or says what is wrong with it."""
        match intent:
            case Intent(type=IntentType.END_VOICE_SESSION, after=after):
                if after not in tuple(After):
                    return f"after must be one of {', '.join(After)}"
                if not self.voice_active:
                    return "there is no voice session to end"
                self.ending = After(after)
            case Intent(type=IntentType.SUPPRESS_AUDIO, value=bool(value)):
                self.suppress_audio = value
            case Intent(type=IntentType.SUPPRESS_TRANSCRIPT, value=bool(value)):
                self.suppress_transcript = value
            case Intent(type=IntentType.SET_PENDING_MESSAGE, message=str(message)):
                if not 0 < len(message) <= MAX_PENDING_MESSAGE_CHARS:
                    return f"message must have 1 to {MAX_PENDING_MESSAGE_CHARS} characters"
                self.pending_message = message
            case Intent(type=IntentType.CHANGE_VOICE, voice_speed=int(speed), volume=int(volume)):
                if speed not in VOICE_SPEEDS or volume not in VOLUMES:
                    return "its speed or volume is out of range"
                self.has_new_settings |= (speed, volume) != (self.voice_speed, self.volume)
                self.voice_speed, self.volume = speed, volume
            case Intent(type=type) if type in tuple(IntentType):
                return "its value is missing or of the wrong type"
            case _:
                return "its type is unknown"
        return None


@dataclass(slots=True)
class ToolSession:
    """A session as the gate sees it. Its owner sets the mode and begins the turns; the gate keeps the turn's ledger."""

    id: str
    user: str
    snapshot: Snapshot
    mode: Mode = Mode.TEXT
    authenticated: bool = False
    active: bool = True
    turn: int = 0
    """The user's turns. A redelivered or replayed message does not advance it."""
    pinned_version: str = ""
    """The version of the tools that the session knows; differs from the snapshot's if it began on another process."""
    client_tools: tuple[Tool, ...] = ()
    """Tools that this session's client has declared and runs itself."""
    conversation: Callable[[], str | None] = lambda: None
    """Returns the id of the conversation that the session is in now, for the audit."""
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    messaging: Messaging = field(default_factory=NoClient)
    state: StateController = field(default_factory=StateController)
    ledger: Ledger = field(default_factory=Ledger)
    unheard: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)
    """Results of actions that outlived their turn, to be reported in the next one."""
    going_on: dict["asyncio.Task[ToolResult]", int] = field(default_factory=dict)
    """Actions that outlived their turn and are still running, with the turn."""
    left: dict[str, CallRecord] = field(default_factory=dict)
    """Runs of another process for this session that have not been reported yet, by record id."""
    heard: deque[str] = field(default_factory=lambda: deque(maxlen=MESSAGES_HEARD))
    """The user's latest messages."""
    prefetched: dict[str, Prefetched] = field(default_factory=dict)
    """Prefetched results, by the fingerprint of their call."""

    _view: SessionView | None = field(default=None, init=False, repr=False)
    _server_tools: Snapshot = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.pinned_version = self.pinned_version or self.snapshot.version
        self._server_tools = self.snapshot

    def pin(self, snapshot: Snapshot) -> None:
        """Gives the session other tools of the server. It keeps those of its client."""
        self._server_tools = snapshot
        self.snapshot = snapshot.with_tools(self.client_tools)

    def set_client_tools(self, tools: Sequence[Tool]) -> None:
        """Replaces the tools that this session's client runs itself.

        Raises `ClientToolError` for a name that the server's own tools have: a client may not take the place of a tool
        that the server's operator has chosen.
        """
        names = [tool.id for tool in tools]
        if len(names) > MAX_CLIENT_TOOLS:
            raise ClientToolError(f"There are {len(names)} tools. Declare at most {MAX_CLIENT_TOOLS}.")
        for name in names:
            if name in self._server_tools.tools:
                raise ClientToolError(f"The server has a tool called {name} itself. Give yours another name.")
            if names.count(name) > 1:
                raise ClientToolError(f"{name} is declared twice. Declare each tool once.")
        self.client_tools = tuple(tools)
        self.pin(self._server_tools)

    def view(self, mode: Mode) -> SessionView:
        """Returns the session as a handler sees it; the calls of a turn share one."""
        view = SessionView(
            id=self.id,
            user=self.user,
            mode=mode,
            active=self.active,
            turn=self.turn,
            zone=self.zone,
            voice_speed=self.state.voice_speed,
            volume=self.state.volume,
        )
        if self._view is None or self._view != view:
            self._view = view
        return self._view

    def take_prefetched(self, fingerprint: str, now_s: float) -> ToolResult | None:
        """Takes the prefetched result of a call, if it is still valid. Expired ones are dropped."""
        self.prefetched = {key: each for key, each in self.prefetched.items() if now_s - each.at_s <= PREFETCH_TTL_S}
        found = self.prefetched.pop(fingerprint, None)
        return None if found is None else found.result

    def facts(self, environment: str) -> dict[str, Any]:
        """Returns the variables of availability expressions."""
        return {
            "mode": str(self.mode),
            "environment": environment,
            "user": {"id": self.user, "authenticated": self.authenticated},
            "session": {"id": self.id, "active": self.active, "turn": self.turn},
        }
