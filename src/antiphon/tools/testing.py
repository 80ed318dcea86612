"""For the tests of a tool: a context in one line, a clock that stands still, and a way to load a handler."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from antiphon.tools.context import Audio, AuditTrail, Context, Messaging, SessionView, ToolView, Voice
from antiphon.tools.spec import Capability, Mode


@dataclass(slots=True)
class StillClock:
    """A clock that moves only when it is told to."""

    at_ms: int = 1_767_268_800_000
    """2026-01-01 12:00 UTC, a Thursday."""

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).astimezone(zone)

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    def advance(self, *, seconds: float) -> None:
        self.at_ms += round(seconds * 1000)


@dataclass(slots=True)
class Outbox:
    """Keeps what a handler sends to the client."""

    sent: list[dict[str, Any]] = field(default_factory=list)

    async def send(self, message: Mapping[str, Any]) -> None:
        self.sent.append(dict(message))


@dataclass(slots=True)
class Trail:
    """Keeps what a handler logs to the audit."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def log(self, event: str, **data: Any) -> None:
        self.events.append((event, data))


def make_context(
    tool: str = "a_tool",
    *,
    mode: Mode = Mode.TEXT,
    active: bool = True,
    user: str = "local",
    zone: str = "UTC",
    clock: StillClock | None = None,
    messaging: Messaging | None = None,
    audit: AuditTrail | None = None,
    seed: int = 7,
    granted: Mapping[Capability, object] | None = None,
) -> Context:
    """What `execute` gets as its second argument, with fakes where the server has the real thing."""
    return Context(
        session=SessionView("s1", user, mode, active, 1, ZoneInfo(zone)),
        tool=ToolView(tool, "1.0.0", True),
        messaging=messaging or Outbox(),
        voice=Voice(mode is Mode.VOICE),
        audio=Audio(),
        audit=audit or Trail(),
        clock=clock or StillClock(),
        rng=Random(seed),
        granted=granted or {},
    )
