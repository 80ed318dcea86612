"""Shows what a "no" is worth: a model repeats the call that the person declined, here and in LiveKit Agents.

Both contenders talk to the same scripted model server. README.md says what is compared.
"""

import argparse
import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.approval.antiphon_session import converse
from bench.approval.model import NEXT, NO, WISH, YES, answer
from bench.approval.turns import Turn
from bench.peers.environment import LIVEKIT_VENV, prepare_peers
from bench.tools import Crashed, last_line
from tests.fakes.chat_server import ChatServer

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "bench" / "results"
REQUIREMENTS: Final = ROOT / "bench" / "approval" / "requirements.txt"
INSTALLING: Final = "Installing LiveKit Agents into bench/.venv-livekit. This takes about a minute, once."
PATIENCE_S: Final = 60.0
LIVEKIT: Final = "LiveKit Agents 2.0.0b1"
OURS: Final = "Antiphon"

Conversations = Mapping[str, Sequence[Turn]]
"""The turns by what the person answered."""


async def run_livekit(python: Path, answered: str) -> list[Turn]:
    """Raises `Crashed`."""
    async with ChatServer(answer) as model:
        sayings = json.dumps([WISH, answered, NEXT])
        command = (str(python), "-m", "bench.approval.livekit_agent", model.url, sayings)
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE, stderr=PIPE)
        try:
            output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise Crashed(f"It did not finish within {PATIENCE_S:.0f} s.") from None
    if process.returncode:
        raise Crashed(last_line(errors.decode()))
    return [msgspec.json.decode(line, type=Turn) for line in output.splitlines()]


async def run_ours(answered: str) -> list[Turn]:
    with TemporaryDirectory() as folder:
        async with ChatServer(answer) as model:
            return [turn async for turn in converse(model.url, [WISH, answered, NEXT], Path(folder))]


def tabulate(found: Mapping[str, Conversations]) -> Table:
    """One row per answer of the person: what became of the calls of the three turns, and how often the tool ran."""
    title = "The model makes a call that needs approval, and repeats it in every turn"
    table = Table("the person", *found, title=title)
    for answered in (YES, NO):
        cells = (describe(conversations[answered]) for conversations in found.values())
        table.add_row(f"“{answered}”", *cells)
    return table


def describe(turns: Sequence[Turn]) -> str:
    runs = count_runs(turns)
    return f"{'; '.join(map(str, turns))}: {runs} {'run' if runs == 1 else 'runs'}"


def count_runs(turns: Sequence[Turn]) -> int:
    return sum(turn.runs for turn in turns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS / "approvals.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    found: dict[str, Conversations] = {OURS: {said: asyncio.run(run_ours(said)) for said in (YES, NO)}}
    crashed = ""
    try:
        python = prepare_peers(REQUIREMENTS, lambda: console.print(INSTALLING), venv=LIVEKIT_VENV)
        found[LIVEKIT] = {said: asyncio.run(run_livekit(python, said)) for said in (YES, NO)}
    except (CalledProcessError, Crashed, OSError) as error:
        crashed = last_line(getattr(error, "stderr", None) or str(error))
    console.print(tabulate(found))
    runs = count_runs(found[OURS][NO])
    verdict = "[red]missed[/]" if runs else "[green]met   [/]"
    console.print(f"{verdict} Runs of a call that the person declined: {runs}, at most 0 wanted")
    if crashed:
        console.print(f"[red]crashed[/] {LIVEKIT}: {escape(crashed)}", soft_wrap=True)
    options.json.write_text(json.dumps({"load": os.getloadavg(), "found": msgspec.to_builtins(found)}, indent=1))
    console.print(f"All of it is in {options.json}.", soft_wrap=True)
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
