"""What happened to the upstream connections of all sessions since the process started: plain numbers, for metrics."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from antiphon.tools.spec import Mode


class ReconnectOutcome(StrEnum):
    """How an attempt to replace a lost or ending upstream connection went."""

    RESUMED = "resumed"
    """The provider continued its session by the handle."""
    FRESH = "fresh"
    """A new upstream session was opened with the context of the conversation."""
    FAILED = "failed"
    """The attempt did not open a connection. Another one may follow."""


@dataclass(slots=True)
class ContinuityCounters:
    """All sessions of a process share one."""

    reconnects: Counter[ReconnectOutcome] = field(default_factory=Counter)
    go_aways: int = 0
    """How often a provider announced that it will close a connection."""
    fallbacks: Counter[Mode] = field(default_factory=Counter)
    """How often a session was moved to a fallback model, which cannot resume the session of the model before."""
    energy_changes: Counter[tuple[Mode, str]] = field(default_factory=Counter)
    """How often the energy of a session changed, by mode and reason."""

    def note_reconnect(self, outcome: ReconnectOutcome) -> None:
        self.reconnects[outcome] += 1

    def note_go_away(self) -> None:
        self.go_aways += 1

    def note_fallback(self, mode: Mode) -> None:
        self.fallbacks[mode] += 1

    def note_energy_change(self, mode: Mode, reason: str) -> None:
        self.energy_changes[mode, reason] += 1
