"""Measures what our layer adds to Gemini Live: latency per message, and its share of a core with fifty sessions.

The unmodified google-genai SDK alone, our server and Pipecat's Gemini Live service talk to the same simulator in the
same run, one after another, each in its own process on one core. The simulator and our clients are on another core.
README.md says what is measured.
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from time import monotonic, monotonic_ns, process_time
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.errors import AntiphonError
from antiphon.sim.certificates import make_certificates
from bench.conversation.figures import Target, tell_load
from bench.live.contenders import run_ours, run_peer
from bench.live.figures import INWARD, OUTWARD, LiveFigures
from bench.live.simulator import TURN_S, simulate
from bench.load.figures import Spread
from bench.load.ledger import Ledger
from bench.load.process import Crashed
from bench.peers.environment import prepare_peers
from bench.sessions import choose_cores
from bench.tools import last_line

RESULTS: Final = Path(__file__).parent / "results"
REQUIREMENTS: Final = Path(__file__).parent / "stock" / "requirements.txt"
INSTALLING: Final = "Installing Pipecat into bench/.venv-peers. This takes about two minutes, once."

OURS: Final = "Antiphon"
BARE: Final = "google-genai alone"
PIPECAT: Final = "Pipecat"
SIZES: Final = (1, 25, 50)
SECONDS: Final = 20.0
SETTLING_S: Final = 1.5
LATE_S: Final = 1.0
ADDED_MS: Final = 2.0
CPU: Final = 0.3
PRIORITY: Final = 10
CARRIED: Final = 50


async def measure(
    name: str,
    command: Sequence[str] | None,
    sessions: int,
    seconds: float,
    core: int,
    profile: Path | None = None,
) -> LiveFigures:
    """Measures one contender with so many sessions. Ours has no command. Raises `Crashed`."""
    ledger = Ledger()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(dir=RESULTS)))
        certificates = make_certificates(folder / "tls")
        simulator = await stack.enter_async_context(
            simulate(certificates, lambda made_ns, now_ns: ledger.note(INWARD, made_ns, now_ns))
        )
        env = {**os.environ, "SSL_CERT_FILE": str(certificates.ca), "GEMINI_API_KEY": "local"}
        run = await stack.enter_async_context(
            run_ours(simulator, ledger, sessions, core, env, folder, profile)
            if command is None
            else run_peer(command, simulator, ledger, sessions, core, env)
        )
        # Garbage collection in this process would stop the simulator, and messages would seem late.
        gc.freeze()
        gc.disable()
        warm_s = TURN_S + SETTLING_S
        ledger.begin_ns = monotonic_ns() + int(warm_s * 1e9)
        ledger.end_ns = ledger.begin_ns + int(seconds * 1e9)
        streaming = asyncio.create_task(run.stream(warm_s + seconds + LATE_S))
        await asyncio.sleep(warm_s)
        turns, frames = simulator.turns, simulator.frames
        begun_s, used_s, own_s = monotonic(), run.cpu_s(), process_time()
        await asyncio.sleep(seconds)
        passed_s = monotonic() - begun_s
        cpu, bench_cpu = (run.cpu_s() - used_s) / passed_s, (process_time() - own_s) / passed_s
        turns, frames = simulator.turns - turns, simulator.frames - frames
        await streaming
        await run.collect()
        gc.enable()
    return LiveFigures(
        contender=name,
        sessions=sessions,
        cpu=cpu,
        bench_cpu=bench_cpu,
        turns=turns,
        frames_a_second=frames / passed_s / sessions,
        took_ms={kind: Spread.of([took.ms for took in all_]) for kind, all_ in sorted(ledger.took.items())},
        problems=[*simulator.problems[:5], *ledger.problems[:5]],
    )


def find(found: Sequence[LiveFigures], contender: str, sessions: int) -> LiveFigures | None:
    return next((each for each in found if (each.contender, each.sessions) == (contender, sessions)), None)


def tabulate_latency(found: Sequence[LiveFigures], sessions: int) -> Table:
    title = f"{sessions} {'session' if sessions == 1 else 'sessions'}: from sending to arrival, in ms"
    table = Table("", title=title)
    columns = {name: figures.took_ms for name in (BARE, OURS, PIPECAT) if (figures := find(found, name, sessions))}
    for name in columns:
        table.add_column(f"{name} p50", justify="right")
        table.add_column("p99", justify="right")
    added = dict(add_latency(found, sessions))
    if added:
        table.add_column("ours adds p50", justify="right")
        table.add_column("p99", justify="right")
    for kind in (INWARD, *OUTWARD):
        cells = [_tell(took.get(kind)) for took in columns.values()]
        gain = [(f"{p50:+.2f}", f"{p99:+.2f}") for p50, p99 in [added[kind]]] if kind in added else []
        table.add_row(kind, *(cell for pair in (*cells, *gain) for cell in pair))
    return table


def _tell(spread: Spread | None) -> tuple[str, str]:
    return ("", "") if spread is None else (f"{spread.p50:,.2f}", f"{spread.p99:,.2f}")


def add_latency(found: Sequence[LiveFigures], sessions: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yields by how much our p50 and p99 are larger than those of the SDK alone, for each kind of message."""
    ours, bare = find(found, OURS, sessions), find(found, BARE, sessions)
    if ours is None or bare is None:
        return
    for kind in (INWARD, *OUTWARD):
        if kind in ours.took_ms and kind in bare.took_ms:
            mine, its = ours.took_ms[kind], bare.took_ms[kind]
            yield kind, (mine.p50 - its.p50, mine.p99 - its.p99)


def tabulate_costs(found: Sequence[LiveFigures]) -> Table:
    table = Table("", title="What the sessions cost on one core")
    for heading in ("sessions", "CPU", "each", "frames/s each", "turns", "bench's CPU"):
        table.add_column(heading, justify="right")
    for each in found:
        cells = (f"{each.cpu:.0%}", f"{each.cpu / each.sessions:.2%}", f"{each.frames_a_second:.1f}", str(each.turns))
        table.add_row(each.contender, str(each.sessions), *cells, f"{each.bench_cpu:.0%}")
    return table


def judge(found: Sequence[LiveFigures]) -> Iterator[Target]:
    for kind, (_, p99) in add_latency(found, 1):
        yield Target(f"Milliseconds that our layer adds, {kind}, p99", p99, ADDED_MS)
    ours = find(found, OURS, CARRIED)
    if ours is None:
        return
    yield Target(f"Share of a core with {CARRIED} sessions", ours.cpu, CPU)
    for sessions in sorted({each.sessions for each in found if each.sessions > 1}):
        ours, theirs = find(found, OURS, sessions), find(found, PIPECAT, sessions)
        if ours is not None and theirs is not None:
            yield Target(f"Our share of a core / Pipecat's, {sessions} sessions", ours.cpu / theirs.cpu, 1.0)


def write_json(path: Path, found: Sequence[LiveFigures], crashed: Mapping[str, str]) -> None:
    whole = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "targets": msgspec.to_builtins(list(judge(found))),
        "found": msgspec.to_builtins(found),
        "crashed": crashed,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="the numbers of sessions")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each is measured")
    parser.add_argument("--only", nargs="+", choices=(BARE, OURS, PIPECAT), default=(BARE, OURS, PIPECAT))
    parser.add_argument(
        "--realtime", action="store_true", help="with real-time priority, for a machine that is busy (needs root)"
    )
    parser.add_argument("--json", type=Path, default=RESULTS / "providers.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    core, own_core = choose_cores()
    os.sched_setaffinity(0, {own_core})
    if options.realtime:
        # The contenders inherit it. Equals take turns, and the system keeps a twentieth of each core for the rest.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    commands: dict[str, Sequence[str] | None] = {BARE: [sys.executable, "-m", "bench.live.bare_sdk"], OURS: None}
    found: list[LiveFigures] = []
    crashed: dict[str, str] = {}
    try:
        python = prepare_peers(REQUIREMENTS, lambda: console.print(INSTALLING))
        commands[PIPECAT] = [str(python), "-m", "bench.live.pipecat_sessions"]
    except (OSError, CalledProcessError) as error:
        crashed[PIPECAT] = f"not installed: {last_line(getattr(error, 'stderr', None) or str(error))}"
    for sessions in options.sizes:
        for name, command in commands.items():
            if name in options.only:
                console.print(f"{name}, {sessions} …")
                try:
                    found.append(asyncio.run(measure(name, command, sessions, options.seconds, core)))
                except (AntiphonError, Crashed, OSError, TimeoutError) as error:
                    crashed[name] = str(error) or type(error).__name__
    for sessions in options.sizes:
        console.print(tabulate_latency(found, sessions))
    console.print(tabulate_costs(found))
    for target in judge(found):
        console.print(str(target), soft_wrap=True)
    problems = [f"{each.contender}, {each.sessions}: {problem}" for each in found for problem in each.problems]
    for problem in problems:
        console.print(f"[red]problem[/] {escape(problem)}", soft_wrap=True)
    for name, reason in crashed.items():
        console.print(f"[red]crashed[/] {name}: {escape(reason)}", soft_wrap=True)
    write_json(options.json, found, crashed)
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 1 if crashed or problems else 0


if __name__ == "__main__":
    sys.exit(main())
