"""One pass of a call through the gate: what its steps learn about it, and what they work with."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from antiphon.clock import Clock
from antiphon.storage.base import CallRecord, Confirmation
from antiphon.tools.call import Keys, ToolCall
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Capability, Mode
from antiphon.tools.tool import Tool

if TYPE_CHECKING:
    from antiphon.tools.audit import AuditLog
    from antiphon.tools.confirm import Confirmations
    from antiphon.tools.journal import Journal
    from antiphon.tools.policy import RateLimiter

MAX_NAME_CHARS: Final = 64


class Attempt:
    """Class attributes are the defaults: a pass through the gate sets few of them, and is quick to make."""

    approved: Confirmation | None = None
    keys: Keys | None = None
    looked_up: tuple[str | None, str | None] = (None, None)
    """The keys under which this call is known: the provider's, and that of its content."""
    args: dict[str, Any]
    defaults: Sequence[str] = ()
    clamped: dict[str, Any] | None = None
    confirmation: str | None = None
    record: CallRecord | None = None
    """Of the run that this pass has announced."""
    unfinished: CallRecord | None = None
    """An earlier run of this call whose outcome is unknown, and which may be repeated."""
    cache_hit = False
    ran = False
    children = 0
    """Calls that this one's handler has made."""
    outcome: asyncio.Future[ToolResult] | None = None
    """Made by the first duplicate that waits for this pass."""

    def __init__(
        self, call: ToolCall, session: ToolSession, started: float, depth: int, approved: Confirmation | None
    ) -> None:
        self.call = call
        self.session = session
        self.started = started
        self.depth = depth
        self.tool: Tool | None = session.snapshot.tools.get(call.name)
        # A name that no tool has comes from a model and goes into logs: cut, and made printable.
        self.name = call.name if self.tool else call.name[:MAX_NAME_CHARS].encode("utf-8", "replace").decode()
        self.mode = session.mode
        self.turn = session.turn
        if approved is not None:
            # An approved call runs as it was asked for: in the mode and the turn of the question.
            self.approved, self.confirmation = approved, "approved"
            self.mode, self.turn = Mode(approved.mode), approved.turn

    @property
    def key(self) -> str | None:
        return self.looked_up[0] or self.looked_up[1]


@dataclass(frozen=True, slots=True)
class GateDeps:
    """What the steps work with: made once, shared by all calls."""

    journal: "Journal"
    confirmations: "Confirmations"
    audit: "AuditLog"
    rates: "RateLimiter"
    clock: Clock
    rng: Random
    environment: str
    capabilities: Mapping[Capability, object]


def refuse(failure: Failure, spoken: str | None = None) -> ToolResult:
    """The failure is for the model; `spoken` is what a person is told of it, where that is not the same."""
    return ToolResult(False, error=failure, spoken=spoken)
