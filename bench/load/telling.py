"""Shows the figures as tables and targets, and writes them to a file."""

import json
import os
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.load.figures import Figures, Load, PeerFigures
from bench.load.talk import SILENCES

CARRIED: Final = 200
"""The number of sessions for which the targets apply, with the scripted voice."""
IDLE: Final = Load(CARRIED, streaming=False)
IN_MEMORY: Final = Load(CARRIED, storage="memory")
"""A load without the database, which shows the cost of sockets and sessions."""
EARS: Final = Load(100, ears=True)
"""The load for which the targets apply when the server listens."""

P99_MS: Final = 50.0
STREAMING_KB: Final = 500.0
EARS_KB: Final = 1_000.0
IDLE_KB: Final = 100.0
START_S: Final = 2.0
PEER_SHARE: Final = 0.1


class Found(Struct):
    """Everything that was measured."""

    starts_s: list[float] = msgspec.field(default_factory=list)
    runs: list[Figures] = msgspec.field(default_factory=list)
    peers: list[PeerFigures] = msgspec.field(default_factory=list)

    def with_ears(self, ears: bool) -> list[Figures]:
        return [figures for figures in self.runs if figures.load.ears is ears]


def judge(found: Found) -> Iterator[tuple[str, float, float]]:
    """Yields each target that was measured: its description, the figure and the limit."""
    for figures in found.runs:
        p99_ms, each_kb = figures.judged_p99_ms, figures.rss_kb_a_session
        if figures.load == Load(CARRIED):
            yield f"{CARRIED} sessions on one core: ms of added latency, p99", p99_ms, P99_MS
            yield "KB a streaming session", each_kb, STREAMING_KB
        elif figures.load == IDLE:
            yield "KB an idle session", each_kb, IDLE_KB
        elif figures.load == EARS:
            yield f"{EARS.sessions} sessions with ears on one core: ms of added latency, p99", p99_ms, P99_MS
            yield "KB a session with ears", each_kb, EARS_KB
            if found.peers:
                share = figures.cpu_a_session / min(peer.cpu_a_session for peer in found.peers)
                yield "CPU of a session with ears, by that of Pipecat's input side", share, PEER_SHARE
    if found.starts_s:
        yield "Seconds from the start to ready", median(found.starts_s), START_S


def report(console: Console, found: Found) -> None:
    if scripted := found.with_ears(False):
        stored = [figures for figures in scripted if figures.load.storage == "sqlite" and figures.load.streaming]
        console.print(_tell_scripted(scripted), _tell_kinds(max(stored, key=lambda figures: figures.load.sessions)))
    if with_ears := found.with_ears(True):
        console.print(_tell_ears(with_ears))
    console.print(_tell_costs(found.runs))
    if found.peers:
        console.print(_tell_peers(found.peers))
    console.print(_tell_host(found.runs), soft_wrap=True)
    for what, is_, limit in judge(found):
        verdict = "[green]met   [/]" if is_ <= limit else "[red]missed[/]"
        console.print(f"{verdict} {what}: {is_:,.2f}, at most {limit:g} wanted", soft_wrap=True)


def write_json(path: Path, found: Found) -> None:
    whole: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "targets": [{"what": what, "is": is_, "at_most": limit} for what, is_, limit in judge(found)],
        **msgspec.to_builtins(found),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def _tell_scripted(runs: Sequence[Figures]) -> Table:
    table = _table(*_LATENCY, title="A scripted voice on one core, added latency in ms")
    for figures in runs:
        if figures.load.streaming:
            table.add_row(str(figures.load), *_tell_latency(figures), str(figures.turns))
    return table


def _tell_ears(runs: Sequence[Figures]) -> Table:
    headings = (*_LATENCY, "answered", "short", "middle", "long", "unfinished")
    table = _table(*headings, title="Real listening on one core, added latency in ms")
    for figures in runs:
        counts = (figures.begun, figures.turns, *map(figures.count, SILENCES))
        table.add_row(str(figures.load), *_tell_latency(figures), *map(str, counts))
    return table


def _tell_latency(figures: Figures) -> Iterator[str]:
    for each in (figures.took_ms.p50, figures.took_ms.p99, figures.undisturbed_ms.p99):
        yield f"{each:,.1f}"


def _tell_costs(runs: Sequence[Figures]) -> Table:
    table = _table("sessions", "CPU", "each", "KB each", "our CPU", "our p99", title="What they cost")
    for figures in runs:
        table.add_row(
            f"{figures.load}{' with ears' if figures.load.ears else ''}",
            f"{figures.server_cpu:.0%}",
            f"{figures.cpu_a_session:.2%}",
            f"{figures.rss_kb_a_session:,.0f}",
            f"{figures.generator_cpu:.0%}",
            f"{figures.generator_late_ms.p99:.1f}" if figures.load.streaming else "",
        )
    return table


def _tell_host(runs: Sequence[Figures]) -> str:
    """Describes how much of the measurement was not disturbed by the host."""
    streaming = [figures for figures in runs if figures.load.streaming]
    quiet = sum(figures.undisturbed_ms.count for figures in streaming)
    everything = sum(figures.took_ms.count for figures in streaming)
    worst = max((figures.stolen for figures in streaming), default=0.0)
    return f"quiet: {quiet:,} of {everything:,}, while the host took no time. It took up to {worst:.1%} of our cores."


def _tell_kinds(figures: Figures) -> Table:
    title = f"{figures.load.sessions} sessions by kind of message, in ms"
    table = _table("message", "count", "p50", "p99", "max", title=title)
    for kind, took in figures.took_ms_by_kind.items():
        table.add_row(kind, f"{took.count:,}", f"{took.p50:,.1f}", f"{took.p99:,.1f}", f"{took.max:,.1f}")
    return table


def _tell_peers(peers: Sequence[PeerFigures]) -> Table:
    table = _table("sessions", "turns", "votes", "CPU", "each", "KB each", title="Pipecat's input side on one core")
    for peer in peers:
        cost = (f"{peer.cpu:.0%}", f"{peer.cpu_a_session:.2%}", f"{peer.rss_kb_a_session:,.0f}")
        table.add_row(str(peer.sessions), str(peer.turns), str(peer.votes), *cost)
    return table


_LATENCY: Final = ("sessions", "p50", "p99", "quiet p99", "turns")


def _table(first: str, *headings: str, title: str) -> Table:
    table = Table(first, title=title)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
