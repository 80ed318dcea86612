"""Measures the cost of a tool call: our gate by step, and the same tool in five other libraries.

Each contender has its own process, which waits for its turn. Each round measures all of them (A B C, A B C, …), so
other work on the machine affects all alike. The table has the median of the rounds. README.md says what is compared.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from subprocess import PIPE, CalledProcessError, Popen
from tempfile import TemporaryFile
from typing import IO, Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.peers.environment import prepare_peers

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "bench" / "results"
REQUIREMENTS: Final = ROOT / "bench" / "peers" / "requirements.txt"
INSTALLING: Final = "Installing the peers into bench/.venv-peers. This takes about a minute, once."

OURS: Final = ("memory", "sqlite", "steps")
PEERS: Final = ("openai_agents", "pydantic_ai_tools", "mcp_sdk", "langchain_tool", "fastmcp_client")
HANDLER: Final = "handler"
AIM_US: Final = 25


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one contender, with its name in the table."""

    label: str
    contender: str
    figure: str = "call"


GATE: Final = Row("Antiphon's gate", "memory", "reading")
AGENTS: Final = Row("openai-agents, FunctionTool", "openai_agents")
MCP: Final = Row("MCP SDK, in process through streams", "mcp_sdk", "streams")
LANGCHAIN: Final = Row("LangChain, StructuredTool", "langchain_tool")
ROWS: Final = (
    GATE,
    Row("  with a tool that writes", "memory", "writing"),
    Row("  reading, with SQLite", "sqlite", "reading"),
    Row("  writing, with SQLite", "sqlite", "writing"),
    Row("openai-agents, on_invoke_tool alone", "openai_agents", "invoke"),
    AGENTS,
    Row("openai-agents, as its runner calls it", "openai_agents", "runner"),
    Row("Pydantic AI, ToolManager", "pydantic_ai_tools"),
    Row("MCP SDK, in process without messages", "mcp_sdk"),
    MCP,
    LANGCHAIN,
    Row("LangChain, with a message for the model", "langchain_tool", "message"),
    Row("FastMCP, client and server in process", "fastmcp_client"),
)
TARGETS: Final = ((AGENTS, 1.3), (LANGCHAIN, 0.1), (MCP, 0.1))

Rounds = Mapping[str, Sequence[Mapping[str, float]]]
"""The figures of each contender, round by round."""


class Crashed(Exception):
    """A contender ended too early. The message has the last line of its output."""


class Child:
    """The process of a contender, which measures on request."""

    def __init__(self, process: Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        if self._read() != "ready":
            raise Crashed("It wrote something else than that it is ready.")

    def measure(self, calls: int) -> dict[str, float]:
        assert self._process.stdin is not None
        # If the contender is gone, there is nothing to read.
        with suppress(BrokenPipeError):
            print(calls, file=self._process.stdin, flush=True)
        figures: dict[str, float] = json.loads(self._read())
        return figures

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise Crashed(last_line(self._errors.read()))
        return line.strip()


@contextmanager
def started(command: Sequence[str]) -> Iterator[Child]:
    """Starts a contender and waits until it is ready. Closing its input ends it."""
    with (
        TemporaryFile("w+") as errors,
        Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=errors, text=True) as process,
    ):
        yield Child(process, errors)


def last_line(text: str) -> str:
    return (text.strip() or "It said nothing.").splitlines()[-1]


def compete(console: Console, rounds: int, calls: int) -> tuple[Rounds, dict[str, str]]:
    """Returns the figures, and the reasons of the contenders that crashed."""
    figures: dict[str, list[dict[str, float]]] = {}
    crashed: dict[str, str] = {}
    commands = {name: [sys.executable, "-m", "bench.gate", name, str(RESULTS)] for name in OURS}
    try:
        python = prepare_peers(REQUIREMENTS, lambda: console.print(INSTALLING))
        commands |= {name: [str(python), "-m", "bench.peers", name] for name in PEERS}
    except (OSError, CalledProcessError) as error:
        crashed |= dict.fromkeys(PEERS, f"not installed: {last_line(getattr(error, 'stderr', None) or str(error))}")
    with ExitStack() as stack:
        children: dict[str, Child] = {}
        for name, command in track(commands.items(), "Starting", console=console, transient=True):
            try:
                children[name] = stack.enter_context(started(command))
            except Crashed as error:
                crashed[name] = str(error)
        for _ in track(range(rounds), "Measuring", console=console, transient=True):
            for name, child in list(children.items()):
                try:
                    figures.setdefault(name, []).append(child.measure(calls))
                except Crashed as error:
                    crashed[name] = str(error)
                    del children[name]
    return {name: of for name, of in figures.items() if name not in crashed}, crashed


def costs(row: Row, rounds: Rounds) -> list[float]:
    """Returns the microseconds per call without the handler, round by round; nothing if the contender crashed."""
    handler = medians(row.contender, rounds).get(HANDLER, 0.0)
    return [figures[row.figure] - handler for figures in rounds.get(row.contender, ())]


def compare(rounds: Rounds) -> Table:
    table = Table("", title="One kb_search call without its handler, in microseconds")
    for heading in ("median", "lowest", "ours / theirs"):
        table.add_column(heading, justify="right")
    ours = costs(GATE, rounds)
    for row in ROWS:
        theirs = costs(row, rounds)
        if not theirs:
            table.add_row(row.label, "crashed")
            continue
        ratio = f"{median(ours) / median(theirs):.2f}" if ours and row.contender not in OURS else ""
        table.add_row(row.label, f"{median(theirs):,.1f}", f"{min(theirs):,.1f}", ratio)
    return table


def divide(rounds: Rounds) -> Table:
    steps = medians("steps", rounds)
    whole = sum(steps.values())
    table = Table("", title="The gate by step, in microseconds")
    for heading in ("median", "share"):
        table.add_column(heading, justify="right")
    for name, cost in steps.items():
        table.add_row(name, f"{cost:.1f}", f"{cost / whole:.0%}")
    return table


def medians(contender: str, rounds: Rounds) -> dict[str, float]:
    measured = rounds.get(contender, ())
    names = measured[0] if measured else ()
    return {name: median(figures[name] for figures in measured) for name in names}


def judge(rounds: Rounds) -> Iterator[tuple[str, float, float]]:
    """Yields each target that could be measured: its description, the figure and the limit."""
    ours = costs(GATE, rounds)
    for peer, limit in TARGETS:
        theirs = costs(peer, rounds)
        if ours and theirs:
            yield f"{peer.label}: ours / theirs", median(ours) / median(theirs), limit
    if ours:
        yield "Antiphon's gate: microseconds a call (an aim)", median(ours), AIM_US


def write_json(path: Path, rounds: Rounds, calls: int) -> None:
    summary = {
        row.label.strip(): {"median_us": median(of), "min_us": min(of)} for row in ROWS if (of := costs(row, rounds))
    }
    found: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "peers": [line for line in REQUIREMENTS.read_text().splitlines() if "==" in line],
        "calls_per_round": calls,
        "without_handler": summary,
        "steps_us": medians("steps", rounds),
        "targets": [{"what": what, "is": is_, "at_most": limit} for what, is_, limit in judge(rounds)],
        "rounds_us": rounds,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--calls", type=int, default=200, help="calls of each contender in a round")
    parser.add_argument("--json", type=Path, default=RESULTS / "tools.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    rounds, crashed = compete(console, options.rounds, options.calls)
    console.print(compare(rounds), divide(rounds))
    for what, is_, limit in judge(rounds):
        verdict = "[green]met   [/]" if is_ <= limit else "[red]missed[/]"
        console.print(f"{verdict} {what} is {is_:.2f}, at most {limit:g} wanted", soft_wrap=True)
    for name, reason in crashed.items():
        console.print(f"[red]crashed[/] {name}: {escape(reason)}", soft_wrap=True)
    write_json(options.json, rounds, options.calls)
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    console.print(f"All figures are in {options.json}. The machine's load was {load}.", soft_wrap=True)
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
