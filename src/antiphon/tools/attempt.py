"""One pass of a call through the gate: what its steps learn about it, and what they work with."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from antiphon.clock import Clock
from antiphon.storage.base import CallRecord, Confirmation
from antiphon.storage.limits import LimitStore
from antiphon.tools.call import Keys, ToolCall
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

if TYPE_CHECKING:
    from antiphon.tools.audit import AuditLog
    from antiphon.tools.confirm import Confirmations
    from antiphon.tools.context import Offer
    from antiphon.tools.journal import Journal

MAX_NAME_CHARS: Final = 64


class Attempt:
    """The defaults are class attributes, because a pass sets only a few of them and must be cheap to create."""

    approved: Confirmation | None = None
    keys: Keys | None = None
    looked_up: tuple[str | None, str | None] = (None, None)
    """The keys that identify this call: the provider's id, and the hash of its content."""
    args: dict[str, Any]
    defaults: Sequence[str] = ()
    clamped: dict[str, Any] | None = None
    confirmation: str | None = None
    record: CallRecord | None = None
    """The record of the run that this pass has started."""
    unfinished: CallRecord | None = None
    """An earlier run of this call whose outcome is unknown and which may be repeated."""
    cache_hit = False
    ran = False
    children = 0
    """How many calls this call's handler has made."""
    outcome: asyncio.Future[ToolResult] | None = None
    """Created by the first duplicate that waits for this pass."""

    def __init__(
        self,
        call: ToolCall,
        session: ToolSession,
        started: float,
        *,
        depth: int = 0,
        approved: Confirmation | None = None,
    ) -> None:
        self.call = call
        self.session = session
        self.started = started
        self.depth = depth
        self.tool: Tool | None = session.snapshot.tools.get(call.name)
        # An unknown name comes from a model and goes into logs, so it is shortened and made printable.
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
    """What the gate's steps depend on. It is created once and shared by all calls."""

    journal: "Journal"
    confirmations: "Confirmations"
    audit: "AuditLog"
    limits: LimitStore
    clock: Clock
    rng: Random
    environment: str
    offers: "Mapping[str, Offer]"
    """Makes each capability, by its name."""


def refuse(failure: Failure, spoken: str | None = None) -> ToolResult:
    """Makes a failed result. The failure is for the model; `spoken` is for the person, where that differs."""
    return ToolResult(False, error=failure, spoken=spoken)
