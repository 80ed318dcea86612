"""How many sessions one core carries, what each costs, and how much later than it could be a message comes.

The server is a process of its own on one core, with SQLite, and with a scripted voice that costs next to nothing. This
process is all of its clients, on another core. Every session streams 20 ms frames in real time and has a short turn
every three seconds. README.md says what is measured.
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import pstats
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, process_time
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.load.crowd import LATE_S, RAMP_S, Crowd
from bench.load.figures import Figures, Load, Spread, spreads
from bench.load.process import Crashed, ServerProcess, load_server, measure_start_s, started

RESULTS: Final = Path(__file__).parent / "results"
SIZES: Final = (1, 10, 50, 100, 200)
ALL_SIZES: Final = (*SIZES, 400)
STARTS: Final = 3
WARM_S: Final = RAMP_S + 0.2
IDLE_S: Final = 3.0
PROFILED: Final = 40

CARRIED: Final = 200
"""Sessions for which the targets hold."""
IDLE: Final = Load(CARRIED, streaming=False)
IN_MEMORY: Final = Load(CARRIED, storage="memory")
"""Without the database: what the sockets and the sessions cost."""
P99_MS: Final = 50.0
STREAMING_KB: Final = 500.0
IDLE_KB: Final = 100.0
START_S: Final = 2.0


async def stream(server: ServerProcess, load: Load, seconds: float) -> Figures:
    """Everybody talks all the time."""
    before_bytes = await warm_up(server)
    crowd = Crowd(server.address)
    await crowd.gather(load.sessions)
    # The collector of this process would stop all clients at once, and the messages would look late.
    gc.freeze()
    gc.disable()
    talking = asyncio.create_task(crowd.talk_measured(WARM_S, seconds))
    await asyncio.sleep(WARM_S)
    cpu = await measure_cpu(server, seconds)
    await talking
    gc.enable()
    held_bytes = server.rss_bytes() - before_bytes
    await crowd.leave()
    return sum_up(load, crowd, cpu, held_bytes)


async def idle(server: ServerProcess, load: Load) -> Figures:
    """Everybody has one turn, then nobody says anything."""
    before_bytes = await warm_up(server)
    crowd = Crowd(server.address)
    await crowd.gather(load.sessions)
    await crowd.talk_once()
    await asyncio.sleep(LATE_S)
    cpu = await measure_cpu(server, IDLE_S)
    held_bytes = server.rss_bytes() - before_bytes
    await crowd.leave()
    return sum_up(load, crowd, cpu, held_bytes)


async def warm_up(server: ServerProcess) -> int:
    """One session from its beginning to its end, so that what is loaded once is loaded. Gives the memory then."""
    crowd = Crowd(server.address)
    await crowd.gather(1)
    await crowd.talk_once()
    await crowd.leave()
    return server.rss_bytes()


async def measure_cpu(server: ServerProcess, seconds: float) -> tuple[float, float]:
    """The shares of a core that the server and this process use."""
    begun_s, server_s, own_s = monotonic(), server.cpu_s(), process_time()
    await asyncio.sleep(seconds)
    passed_s = monotonic() - begun_s
    return (server.cpu_s() - server_s) / passed_s, (process_time() - own_s) / passed_s


def sum_up(load: Load, crowd: Crowd, cpu: tuple[float, float], held_bytes: int) -> Figures:
    took_ms, by_kind = spreads(crowd.ledger)
    return Figures(
        load=load,
        server_cpu=cpu[0],
        generator_cpu=cpu[1],
        generator_late_ms=Spread.of(crowd.late_ms),
        rss_kb_a_session=held_bytes / load.sessions / 1000,
        took_ms=took_ms,
        took_ms_by_kind=by_kind,
        turns=crowd.ledger.turns,
        problems=crowd.ledger.problems[:10],
    )


def run(load: Load, seconds: float, core: int, profile_path: Path | None = None) -> Figures:
    """In a server of its own: memory that was used once is not given back, and would be missing from the next run."""
    # Beside the results, not in /tmp, which is often kept in memory and would flatter SQLite.
    with (
        TemporaryDirectory(dir=RESULTS) as folder,
        started(load_server(Path(folder), load.storage, profile_path), core) as server,
    ):
        return asyncio.run(stream(server, load, seconds) if load.streaming else idle(server, load))


def measure_starts(core: int) -> list[float]:
    starts: list[float] = []
    for _ in range(STARTS):
        with TemporaryDirectory(dir=RESULTS) as folder:
            starts.append(measure_start_s(Path(folder), core))
    return starts


def tell_runs(runs: Sequence[Figures]) -> Table:
    table = Table("sessions", title="One server on one core, added latency in ms")
    for heading in ("p50", "p99", "turns", "CPU", "each", "KB each", "our CPU", "our p99"):
        table.add_column(heading, justify="right")
    for figures in runs:
        took = figures.took_ms
        latency = [f"{took.p50:,.1f}", f"{took.p99:,.1f}", str(figures.turns)]
        table.add_row(
            str(figures.load),
            *(latency if figures.load.streaming else [""] * len(latency)),
            f"{figures.server_cpu:.0%}",
            f"{figures.cpu_a_session:.2%}",
            f"{figures.rss_kb_a_session:,.0f}",
            f"{figures.generator_cpu:.0%}",
            f"{figures.generator_late_ms.p99:.1f}" if figures.load.streaming else "",
        )
    return table


def tell_kinds(figures: Figures) -> Table:
    table = Table("message", title=f"{figures.load.sessions} sessions by kind of message, in ms")
    for heading in ("count", "p50", "p99", "max"):
        table.add_column(heading, justify="right")
    for kind, took in figures.took_ms_by_kind.items():
        table.add_row(kind, f"{took.count:,}", f"{took.p50:,.1f}", f"{took.p99:,.1f}", f"{took.max:,.1f}")
    return table


def judge(runs: Sequence[Figures], starts_s: Sequence[float]) -> Iterator[tuple[str, float, float]]:
    """Each target that was measured: what is asked, the figure, and the most that it may be."""
    for figures in runs:
        if figures.load == Load(CARRIED):
            yield f"{CARRIED} sessions on one core: ms of added latency, p99", figures.took_ms.p99, P99_MS
            yield "KB a streaming session", figures.rss_kb_a_session, STREAMING_KB
        elif figures.load == IDLE:
            yield "KB an idle session", figures.rss_kb_a_session, IDLE_KB
    yield "Seconds from the start to ready", median(starts_s), START_S


def profile(console: Console, load: Load, seconds: float, core: int) -> None:
    """The functions in which the server spends most of its time. Being watched makes calls look dear."""
    with TemporaryDirectory(dir=RESULTS) as folder:
        path = Path(folder, "profile")
        run(load, seconds, core, path)
        stats: Any = pstats.Stats(str(path))
    whole_s = stats.total_tt
    table = Table("", title=f"The server's functions by their own time, of {whole_s:.1f} s")
    for heading in ("share", "calls", "µs a call"):
        table.add_column(heading, justify="right")
    functions = sorted(stats.stats.items(), key=lambda entry: entry[1][2], reverse=True)
    for (file, line, name), (_, calls, own_s, _, _) in functions[:PROFILED]:
        place = f"{'/'.join(Path(file).parts[-2:])}:{line} {name}" if line else name
        table.add_row(escape(place), f"{own_s / whole_s:.1%}", f"{calls:,}", f"{own_s / calls * 1e6:.1f}")
    console.print(table)


def write_json(path: Path, runs: Sequence[Figures], starts_s: Sequence[float]) -> None:
    found: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "targets": [{"what": what, "is": is_, "at_most": limit} for what, is_, limit in judge(runs, starts_s)],
        "starts_s": starts_s,
        "runs": msgspec.to_builtins(runs),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1))


def report(console: Console, runs: Sequence[Figures], starts_s: Sequence[float]) -> None:
    stored = [figures for figures in runs if figures.load.storage == "sqlite" and figures.load.streaming]
    largest = max(stored, key=lambda figures: figures.load.sessions)
    console.print(tell_runs(runs), tell_kinds(largest))
    for what, is_, limit in judge(runs, starts_s):
        verdict = "[green]met   [/]" if is_ <= limit else "[red]missed[/]"
        console.print(f"{verdict} {what}: {is_:,.2f}, at most {limit:g} wanted", soft_wrap=True)


def choose_cores() -> tuple[int, int]:
    """The server's, and ours. With one core for both, the figures say little."""
    *others, own = sorted(os.sched_getaffinity(0))
    return (others[0] if others else own), own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="400 sessions too")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="these numbers of sessions instead")
    parser.add_argument("--seconds", type=float, default=8.0, help="that each number is measured")
    parser.add_argument("--profile", type=int, metavar="N", help="show where the server's time goes, and nothing else")
    parser.add_argument("--json", type=Path, default=RESULTS / "sessions.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    core, own_core = choose_cores()
    os.sched_setaffinity(0, {own_core})
    runs: list[Figures] = []
    try:
        if options.profile is not None:
            profile(console, Load(options.profile), options.seconds, core)
            return 0
        starts_s = measure_starts(core)
        sizes = options.sizes or (ALL_SIZES if options.all else SIZES)
        for load in (*map(Load, sizes), IN_MEMORY, IDLE):
            console.print(f"{load} …")
            runs.append(run(load, options.seconds, core))
    except (Crashed, OSError, TimeoutError) as error:
        console.print(f"[red]crashed[/] {escape(str(error) or type(error).__name__)}", soft_wrap=True)
        return 1
    report(console, runs, starts_s)
    write_json(options.json, runs, starts_s)
    problems = [problem for figures in runs for problem in figures.problems]
    for problem in problems[:10]:
        console.print(f"[red]problem[/] {escape(problem)}", soft_wrap=True)
    machine = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    console.print(f"All figures are in {options.json}. The machine's load was {machine}.", soft_wrap=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
