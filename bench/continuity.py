"""Has the same conversation with a Gemini that fails in many ways: Pipecat, LiveKit Agents and ours, one by one.

Then it repeats the worst faults with our own server and measures how soon it is back. Gemini is `antiphon sim
gemini-live`. README.md says what is compared.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from bench.conversation.figures import tell_load
from bench.conversation.served import check_models
from bench.load.process import Crashed
from bench.outages.contenders import CONTENDERS, OURS, Contender, Stage
from bench.outages.judging import Report, Verdict
from bench.outages.repeats import Repeat, make_repeats
from bench.outages.script import Step, cast
from bench.outages.tables import tabulate_calls, tabulate_repeats
from bench.speech.clips import MissingProgram
from bench.tools import last_line

RESULTS: Final = Path(__file__).parent / "results"


class Bench:
    def __init__(self, console: Console, stage: Stage) -> None:
        self._console = console
        self._stage = stage
        self.verdicts: dict[str, list[Verdict]] = {}
        self.reports: dict[str, Report] = {}
        self.repeated: dict[str, list[Verdict]] = {}
        self.crashed: dict[str, str] = {}

    async def compare(self, contenders: Sequence[Contender], steps: Sequence[Step]) -> None:
        for contender in contenders:
            self._console.print(f"{contender.name} …")
            try:
                report, verdicts = await self._stage.hold(contender, contender.prepare(self._console), steps)
            except (AssertionError, CalledProcessError, Crashed, OSError) as error:
                self.crashed[contender.name] = last_line(getattr(error, "stderr", None) or str(error))
            else:
                self.reports[contender.name], self.verdicts[contender.name] = report, verdicts

    async def repeat(self, repeats: Sequence[Repeat]) -> None:
        """Repeats faults with our own server."""
        ours = next(each for each in CONTENDERS if each.name == OURS)
        for repeat in repeats:
            self._console.print(f"{repeat.name} …")
            verdicts = self.repeated.setdefault(repeat.name, [])
            for _ in range(repeat.calls):
                try:
                    _, judged = await self._stage.hold(ours, ours.prepare(self._console), repeat.steps)
                except (AssertionError, Crashed, OSError) as error:
                    self.crashed[repeat.name] = last_line(str(error))
                else:
                    verdicts += repeat.pick(judged)


async def run(options: argparse.Namespace, console: Console, settings: Settings, bench: list[Bench]) -> None:
    workers = Workers(threads=os.cpu_count() or 1)
    try:
        recognizer = MoonshineRecognizer(settings.models_dir, workers)
        await asyncio.to_thread(recognizer.load)
        with nullcontext(options.keep) if options.keep else TemporaryDirectory() as folder:
            bench.append(Bench(console, Stage(Path(folder), settings, recognizer)))
            steps = cast(options.seed)
            chosen = [each for each in CONTENDERS if each.name in options.only]
            await bench[0].compare(chosen, [steps[place] for place in options.steps])
            await bench[0].repeat(make_repeats(options.repeats) if options.repeats else [])
    finally:
        await workers.aclose()


def parse() -> argparse.Namespace:
    names = [each.name for each in CONTENDERS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=names, default=names, metavar="NAME", help="these contenders only")
    parser.add_argument("--steps", nargs="+", type=int, metavar="N", help="these questions only; the first is 0")
    parser.add_argument("--repeats", type=int, default=20, metavar="N", help="how often a fault is repeated; 0: never")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the voices")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder in which audio and logs are kept")
    parser.add_argument("--json", type=Path, default=RESULTS / "continuity.json", metavar="FILE")
    return parser.parse_args()


def main() -> int:
    options = parse()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    if options.keep is not None:
        options.keep.mkdir(parents=True)
    steps = cast(options.seed)
    options.steps = options.steps or range(len(steps))
    settings = load(None)
    made: list[Bench] = []
    try:
        check_models(settings.models_dir)
        asyncio.run(run(options, console, settings, made))
    except (AntiphonError, MissingProgram, OSError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    (bench,) = made
    if bench.verdicts:
        console.print(tabulate_calls(bench.verdicts))
    if bench.repeated:
        console.print(tabulate_repeats(make_repeats(options.repeats), bench.repeated))
    for name, reason in bench.crashed.items():
        console.print(f"[red]crashed[/] {name}: {escape(reason)}", soft_wrap=True)
    whole = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": os.getloadavg(),
        "seed": options.seed,
        "configured": {each.name: each.configured for each in CONTENDERS},
        "versions": {name: report.versions for name, report in bench.reports.items()},
        "problems": {name: report.problems for name, report in bench.reports.items()},
        "verdicts": msgspec.to_builtins(bench.verdicts),
        "repeated": msgspec.to_builtins(bench.repeated),
        "crashed": bench.crashed,
    }
    options.json.write_text(json.dumps(whole, indent=1))
    console.print(f"All of it is in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 1 if bench.crashed else 0


if __name__ == "__main__":
    sys.exit(main())
