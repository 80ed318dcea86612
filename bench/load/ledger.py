"""What all sessions of a run have seen."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Took(NamedTuple):
    ms: float
    came_ns: int


@dataclass(slots=True)
class Ledger:
    begin_ns: int = 0
    end_ns: int = 0
    """Only what was caused between the two is noted."""
    took: dict[str, list[Took]] = field(default_factory=dict)
    """By the kind of message: from its cause to its arrival."""
    begun: int = 0
    """Turns of the user that were to be answered."""
    turns: int = 0
    """That were answered, and are over."""
    problems: list[str] = field(default_factory=list)

    def covers(self, cause_ns: int) -> bool:
        return self.begin_ns <= cause_ns < self.end_ns

    def note(self, kind: str, cause_ns: int, now_ns: int) -> None:
        if self.covers(cause_ns):
            self.add(kind, cause_ns, now_ns)

    def add(self, kind: str, cause_ns: int, now_ns: int) -> None:
        self.took.setdefault(kind, []).append(Took((now_ns - cause_ns) / 1e6, now_ns))
