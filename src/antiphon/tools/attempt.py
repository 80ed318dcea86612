"""One pass of a call through the gate: what the steps learn about it, from the first to the last."""

import asyncio
from typing import Any, Final

from antiphon.storage.base import CallRecord, Confirmation
from antiphon.tools.call import Keys, ToolCall
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

MAX_NAME_CHARS: Final = 64


class Attempt:
    __slots__ = (
        "approved",
        "args",
        "cache_hit",
        "call",
        "children",
        "clamped",
        "confirmation",
        "defaults",
        "depth",
        "keys",
        "mode",
        "name",
        "outcome",
        "ran",
        "record",
        "session",
        "started",
        "tool",
        "turn",
        "unfinished",
    )

    def __init__(
        self,
        call: ToolCall,
        session: ToolSession,
        *,
        started: float,
        depth: int = 0,
        approved: Confirmation | None = None,
    ) -> None:
        self.call = call
        self.session = session
        self.tool: Tool | None = session.snapshot.tools.get(call.name)
        # A name that no tool has comes from a model and goes into logs: cut, and made printable.
        self.name = call.name if self.tool else call.name[:MAX_NAME_CHARS].encode("utf-8", "replace").decode()
        self.approved = approved
        # An approved call runs as it was asked for: in the mode and the turn of the question.
        self.mode = session.mode if approved is None else Mode(approved.mode)
        self.turn = session.turn if approved is None else approved.turn
        self.started = started
        self.depth = depth
        self.keys: Keys | None = None
        self.args: dict[str, Any] = {}
        self.defaults: list[str] = []
        self.clamped: dict[str, Any] | None = None
        self.confirmation: str | None = None if approved is None else "approved"
        self.record: CallRecord | None = None
        self.unfinished: CallRecord | None = None
        """An earlier run of this call whose outcome is unknown, and which may be repeated."""
        self.cache_hit = False
        self.ran = False
        self.children = 0
        """Calls that this one's handler has made."""
        self.outcome: asyncio.Future[Any] | None = None
        """Made by the first duplicate that waits for this pass."""

    @property
    def key(self) -> str | None:
        if self.keys is None:
            return None
        return self.keys.provider or self.keys.content
