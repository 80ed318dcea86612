"""Measures how long tools take to build and to load, by their number.

The tools are generated and have everything that real ones have: a schema with nested parameters, the seven sections, a
handler and sentences. Every measurement has its own process, as `antiphon tools build` and the start of a server have.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from antiphon.authoring import build
from antiphon.tools.registry import Registry

RESULTS: Final = Path(__file__).parent / "results"
SIZES: Final = (10, 100, 1_000)
REPEATS: Final = 3
TASKS: Final = ("build", "load", "load again")
"""The second load in a process is not faster: handlers are compiled from the bytes that were hashed, so there is no
bytecode cache."""

Figures = dict[str, tuple[float, float]]
"""Wall-clock and processor seconds by task. They differ on a busy machine."""

LIMITS_S: Final = {"build": 3.0, "load": 1.0}
"""The limits for the largest size."""

READING: Final = ("list", "count", "compare", "summarize", "export", "check", "rank")
WRITING: Final = ("close", "assign", "delete")
KINDS: Final = ("open", "recent", "overdue", "urgent", "old", "local", "shared", "monthly", "private", "pending")
NOUNS: Final = ("bills", "orders", "tickets", "deals", "meetings", "parcels", "payments", "devices", "texts", "clients")

HANDLER: Final = '''\
"""Works on {words}."""

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok

PAGE_SIZE = 20


async def execute(args: Args, context: Context) -> ToolResult:
    if args.get("customer") == "unknown":
        return fail(ErrorType.NOT_FOUND, "I know no such customer.", suggestion="Ask for the name.")
    found = [{{"id": f"{noun}:{{number}}", "title": describe(number)}} for number in range(args["limit"])]
    return ok({{"found": found[:PAGE_SIZE], "total": len(found)}}, spoken=f"There are {{len(found)}} {words}.")


def describe(number: int) -> str:
    return f"Number {{number}} of the {words}"
'''

PREVIEW: Final = """

def preview(args: Args) -> str:
    return f"{verb} the {words} of {{args.get('customer', 'everybody')}}?"
"""

DOCUMENT: Final = """\
# {tool_id}

## Summary
Use it to {verb} {words}, for one customer or for all of them.

## Preconditions
- The {noun} have been imported.

## Postconditions
- `data` has `found`, a list of records with `id` and `title`, and `total`.

## Invariants
- The same arguments give the same answer within a turn.
- No more than twenty records are in an answer.

## Failure Modes
- VALIDATION: an argument is unknown, missing or out of range.
- NOT_FOUND: there is no such customer.

## Examples
"{verb} {words} of Miller since January"
```args
{{"customer": "Miller", "limit": 5, "period": {{"start": "2026-01-01"}}}}
```

## Common Mistakes
- Asking for a hundred records, where the total is all that is wanted.
- Guessing a customer's name.
"""

SENTENCES: Final = """\
data:
  - sentences:
      - "{verb} [all] [the|my] {words}"
      - "(please|can you) {verb} [the|my] {words}"
    say: "There are {{total}}."
  - sentences:
      - "{verb} [the|my] {words} of {{customer}}"
"""


def write_tools(folder: Path, count: int) -> None:
    """Writes `count` tools into `folder`: seven of ten read, the others write and need confirmation."""
    possible = list(product((*READING, *WRITING), KINDS, NOUNS))
    for verb, kind, noun in Random(7).sample(possible, count):
        write_tool(folder / f"{verb}_{kind}_{noun}", verb, f"{kind} {noun}", noun)


def write_tool(home: Path, verb: str, words: str, noun: str) -> None:
    writes = verb in WRITING
    blanks = {"tool_id": home.name, "verb": verb, "words": words, "noun": noun}
    files = {
        "schema.json": json.dumps(contract(home.name, verb, words, writes), indent=2),
        "doc_summary.md": f"Use it to {verb} {words}.\nIt works for one customer or for all of them.\n",
        "doc.md": DOCUMENT.format(**blanks),
        "handler.py": (HANDLER + PREVIEW if writes else HANDLER).format(**blanks),
        "sentences.yaml": SENTENCES.format(**blanks),
    }
    home.mkdir(parents=True)
    for name, content in files.items():
        (home / name).write_text(content)


def contract(tool_id: str, verb: str, words: str, writes: bool) -> dict[str, Any]:
    day = {"type": "string", "format": "date"}
    return {
        "toolId": tool_id,
        "version": "1.0.0",
        "description": f"Can {verb} {words}, for one customer or for all of them.",
        "category": "action" if writes else "retrieval",
        "sideEffects": "writes" if writes else "read_only",
        "idempotent": not writes,
        "requiresConfirmation": writes,
        "allowedModes": ["text"] if writes else ["text", "voice"],
        "latencyBudgetMs": 800,
        "parameters": {
            "type": "object",
            "additionalProperties": False,
            "required": [],
            "properties": {
                "customer": {"type": "string", "minLength": 1, "maxLength": 80, "description": "Whose they are."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "At most."},
                "order": {"type": "string", "enum": ["newest", "oldest", "largest"], "default": "newest"},
                "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 10},
                "period": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"start": day, "end": day},
                    "description": "When they were made.",
                },
            },
        },
        "outputs": {
            "type": "object",
            "properties": {"found": {"type": "array"}, "total": {"type": "integer"}},
        },
    }


def measure(folder: Path) -> Figures:
    """Builds the tools in `folder`, and loads them twice."""
    artifact = folder / "tool_registry.json"
    times = [(perf_counter(), process_time())]
    build.write(build.build([folder]), artifact)
    times.append((perf_counter(), process_time()))
    for _ in range(2):
        Registry.load(artifact, environment="production")
        times.append((perf_counter(), process_time()))
    spans = [(end[0] - start[0], end[1] - start[1]) for start, end in pairwise(times)]
    return dict(zip(TASKS, spans, strict=True))


def measure_apart(folder: Path) -> Figures:
    command = [sys.executable, __file__, "--measure", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {task: (elapsed_s, processor_s) for task, (elapsed_s, processor_s) in json.loads(done.stdout).items()}


def measure_sizes(console: Console) -> dict[int, Figures]:
    """Returns the medians for each number of tools."""
    runs: dict[int, list[Figures]] = {size: [] for size in SIZES}
    with TemporaryDirectory() as root:
        for size in SIZES:
            write_tools(Path(root, str(size)), size)
        # Round by round, so that other work on the machine affects all sizes alike.
        for size in track(SIZES * REPEATS, "Measuring", console=console, transient=True):
            runs[size].append(measure_apart(Path(root, str(size))))
    return {size: {task: medians([run[task] for run in of]) for task in TASKS} for size, of in runs.items()}


def medians(spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(elapsed for elapsed, _ in spans), median(processor for _, processor in spans)


def tabulate(found: Mapping[int, Figures]) -> Table:
    table = Table("", title="Tools built and loaded, in milliseconds")
    for heading in ("tools", "elapsed", "of processor", "elapsed a tool"):
        table.add_column(heading, justify="right")
    for task in TASKS:
        for size, of in found.items():
            elapsed_ms, processor_ms = (seconds * 1000 for seconds in of[task])
            each = f"{elapsed_ms / size:.2f}"
            table.add_row(task, f"{size:,}", f"{elapsed_ms:,.0f}", f"{processor_ms:,.0f}", each)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS / "registry.json", metavar="FILE")
    parser.add_argument("--measure", type=Path, metavar="FOLDER", help="measure the tools in a folder, once")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options.measure)))
        return
    console = Console()
    found = measure_sizes(console)
    console.print(tabulate(found))
    for task, limit_s in LIMITS_S.items():
        elapsed_s, processor_s = found[SIZES[-1]][task]
        verdict = "[green]met   [/]" if elapsed_s <= limit_s else "[red]missed[/]"
        took = f"{elapsed_s:.2f} s, {processor_s:.2f} s of processor"
        console.print(f"{verdict} {task} of {SIZES[-1]:,} tools took {took}; at most {limit_s:g} s wanted")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"load": os.getloadavg(), "median_s": found}, indent=1))
    console.print(f"All figures are in {options.json}.", soft_wrap=True)


if __name__ == "__main__":
    main()
