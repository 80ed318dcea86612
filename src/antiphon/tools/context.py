"""What a handler is given. Each capability is a small Protocol, so that a test passes a fake in one line."""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final, Protocol, cast
from zoneinfo import ZoneInfo

from msgspec import Struct

from antiphon.clock import Clock
from antiphon.tools.messages import Message
from antiphon.tools.result import After, Intent, IntentType, ToolResult
from antiphon.tools.spec import Capability, Mode

Args = Mapping[str, Any]
"""Validated arguments with defaults filled in."""

NOTHING_GRANTED: Final[Mapping[Capability, object]] = MappingProxyType({})


class SessionView(Struct, frozen=True, gc=False):
    """The session as a handler may see it. To change it, return an intent."""

    id: str
    user: str
    mode: Mode
    active: bool
    turn: int
    zone: ZoneInfo


class ToolView(Struct, frozen=True, gc=False):
    id: str
    version: str
    idempotent: bool


class Messaging(Protocol):
    async def send(self, message: Message) -> None:
        """Hands a message to the client, in order. Raises `ToolError` TRANSIENT if there is no client to take it."""
        ...


class AuditTrail(Protocol):
    def log(self, event: str, **data: Any) -> None:
        """Adds a line about this call to the audit. Values must be JSON."""
        ...


class Catalog(Protocol):
    """The registry as a handler may see it."""

    def tool_ids(self) -> list[str]: ...

    def documentation(self, tool_id: str) -> str | None: ...


class CallTool(Protocol):
    async def __call__(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Runs another tool through the same gate, on the same turn's budget."""
        ...


class Voice(Struct, frozen=True):
    active: bool

    def end_session(self, after: After = After.CURRENT_TURN) -> Intent:
        return Intent(IntentType.END_VOICE_SESSION, after=after)


class Audio:
    def suppress(self, value: bool = True) -> Intent:
        return Intent(IntentType.SUPPRESS_AUDIO, value=value)


class Context(Struct, frozen=True, gc=False):
    session: SessionView
    tool: ToolView
    messaging: Messaging
    voice: Voice
    audio: Audio
    audit: AuditTrail
    clock: Clock
    rng: Random
    granted: Mapping[Capability, object] = NOTHING_GRANTED
    """The capabilities that the tool's schema lists in `uses`."""

    @property
    def call_tool(self) -> CallTool:
        return cast(CallTool, self._granted(Capability.CALL_TOOL))

    @property
    def catalog(self) -> Catalog:
        return cast(Catalog, self._granted(Capability.CATALOG))

    def _granted(self, capability: Capability) -> object:
        try:
            return self.granted[capability]
        except KeyError:
            raise PermissionError(f'{self.tool.id} does not list "{capability}" in its schema\'s "uses"') from None
