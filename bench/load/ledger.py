"""What all sessions of a run have recorded."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Took(NamedTuple):
    ms: float
    came_ns: int


@dataclass(slots=True)
class Ledger:
    begin_ns: int = 0
    end_ns: int = 0
    """Only messages that were caused between the two are recorded."""
    took: dict[str, list[Took]] = field(default_factory=dict)
    """The times from cause to arrival, by kind of message."""
    begun: int = 0
    """How many turns should have been answered."""
    turns: int = 0
    """How many turns were answered and have ended."""
    problems: list[str] = field(default_factory=list)

    def covers(self, cause_ns: int) -> bool:
        return self.begin_ns <= cause_ns < self.end_ns

    def note(self, kind: str, cause_ns: int, now_ns: int) -> None:
        if self.covers(cause_ns):
            self.add(kind, cause_ns, now_ns)

    def add(self, kind: str, cause_ns: int, now_ns: int) -> None:
        self.took.setdefault(kind, []).append(Took((now_ns - cause_ns) / 1e6, now_ns))
