"""What one run of the load has shown."""

from collections.abc import Mapping, Sequence
from statistics import quantiles
from typing import Self

from msgspec import Struct

from bench.load.host import Host
from bench.load.ledger import Ledger


class Spread(Struct, frozen=True):
    count: int
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """All zero if there are none. Of fewer than 100 values, p99 is near the greatest."""
        if len(values) < 2:
            only = values[0] if values else 0.0
            return cls(len(values), only, only, only)
        cuts = quantiles(values, n=100, method="inclusive")
        return cls(len(values), cuts[49], cuts[98], max(values))


class Load(Struct, frozen=True):
    sessions: int
    streaming: bool = True
    """Otherwise they are silent after one turn."""
    storage: str = "sqlite"
    ears: bool = False
    """Whether the server listens to speech, or has a scripted voice."""

    def __str__(self) -> str:
        return f"{self.sessions}{'' if self.streaming else ' idle'}{', in memory' if self.storage == 'memory' else ''}"


class Figures(Struct, frozen=True):
    load: Load
    server_cpu: float
    """The share of its core that the server was at work."""
    generator_cpu: float
    """The same for this process. Near 1 it is this that is measured, not the server."""
    generator_late_ms: Spread
    rss_kb_a_session: float
    """Beyond what the server held before they came, in thousands of bytes."""
    took_ms: Spread
    """From the cause of a message to the message, of all kinds together."""
    took_ms_by_kind: Mapping[str, Spread]
    undisturbed_ms: Spread
    """Of those in whose time the host took nothing from our cores."""
    stolen: float
    """The share of the cores' time that it took in all."""
    begun: int
    """Turns that were to be answered; 0 where that is not counted."""
    turns: int
    problems: Sequence[str]

    @property
    def cpu_a_session(self) -> float:
        return self.server_cpu / self.load.sessions

    @property
    def judged_p99_ms(self) -> float:
        """Of the undisturbed ones, unless they are too few to stand for all."""
        return (self.undisturbed_ms if 4 * self.undisturbed_ms.count >= self.took_ms.count else self.took_ms).p99

    def count(self, kind: str) -> int:
        return self.took_ms_by_kind[kind].count if kind in self.took_ms_by_kind else 0


class PeerFigures(Struct, frozen=True):
    """What a peer takes to listen to so many sessions."""

    sessions: int
    cpu: float
    """The share of its core."""
    rss_kb_a_session: float
    turns: int
    votes: int
    """How often it asked its model whether a turn was complete."""

    @property
    def cpu_a_session(self) -> float:
        return self.cpu / self.sessions


def spreads(ledger: Ledger) -> tuple[Spread, Mapping[str, Spread]]:
    """Of all messages together, and of each kind."""
    by_kind = {kind: [took.ms for took in all_] for kind, all_ in sorted(ledger.took.items())}
    return Spread.of([ms for of in by_kind.values() for ms in of]), {
        kind: Spread.of(of) for kind, of in by_kind.items()
    }


def undisturbed(ledger: Ledger, host: Host) -> Spread:
    everything = (took for of in ledger.took.values() for took in of)
    return Spread.of(
        [took.ms for took in everything if not host.disturbed(took.came_ns - int(took.ms * 1e6), took.came_ns)]
    )
