"""The figures of one load run."""

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
        """Returns zeros if there are no values. With fewer than 100 values, p99 is close to the maximum."""
        if len(values) < 2:
            only = values[0] if values else 0.0
            return cls(len(values), only, only, only)
        cuts = quantiles(values, n=100, method="inclusive")
        return cls(len(values), cuts[49], cuts[98], max(values))


class Load(Struct, frozen=True):
    sessions: int
    streaming: bool = True
    """Whether the sessions keep talking; otherwise they are silent after one turn."""
    storage: str = "sqlite"
    ears: bool = False
    """Whether the server listens to speech, or has a scripted voice."""

    def __str__(self) -> str:
        return f"{self.sessions}{'' if self.streaming else ' idle'}{', in memory' if self.storage == 'memory' else ''}"


class Figures(Struct, frozen=True):
    load: Load
    server_cpu: float
    """The share of its core that the server used."""
    generator_cpu: float
    """The same for this process. Near 1, the figures are about this process, not the server."""
    generator_late_ms: Spread
    rss_kb_a_session: float
    """The growth of the server's memory since before they connected, in thousands of bytes."""
    took_ms: Spread
    """From the cause of a message to its arrival, for all kinds of messages."""
    took_ms_by_kind: Mapping[str, Spread]
    undisturbed_ms: Spread
    """The same for messages during which the host took no time from our cores."""
    stolen: float
    """The share of the cores' time that the host took in total."""
    begun: int
    """How many turns should have been answered; 0 if that is not counted."""
    turns: int
    problems: Sequence[str]

    @property
    def cpu_a_session(self) -> float:
        return self.server_cpu / self.load.sessions

    @property
    def judged_p99_ms(self) -> float:
        """The p99 of the undisturbed messages, unless they are too few to represent all."""
        return (self.undisturbed_ms if 4 * self.undisturbed_ms.count >= self.took_ms.count else self.took_ms).p99

    def count(self, kind: str) -> int:
        return self.took_ms_by_kind[kind].count if kind in self.took_ms_by_kind else 0


class PeerFigures(Struct, frozen=True):
    """What a peer needs to listen to this many sessions."""

    sessions: int
    cpu: float
    """The share of its core that it used."""
    rss_kb_a_session: float
    turns: int
    votes: int
    """How often it asked its model whether a turn was complete."""

    @property
    def cpu_a_session(self) -> float:
        return self.cpu / self.sessions


def spreads(ledger: Ledger) -> tuple[Spread, Mapping[str, Spread]]:
    """Returns the spread over all messages, and over each kind."""
    by_kind = {kind: [took.ms for took in all_] for kind, all_ in sorted(ledger.took.items())}
    return Spread.of([ms for of in by_kind.values() for ms in of]), {
        kind: Spread.of(of) for kind, of in by_kind.items()
    }


def undisturbed(ledger: Ledger, host: Host) -> Spread:
    everything = (took for of in ledger.took.values() for took in of)
    return Spread.of(
        [took.ms for took in everything if not host.disturbed(took.came_ns - int(took.ms * 1e6), took.came_ns)]
    )
