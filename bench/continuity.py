"""Has the same conversation with a Gemini that fails in ten ways: Pipecat, LiveKit Agents and ours, one after another.

Gemini is `antiphon sim gemini-live`. README.md says what is compared.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from bench.conversation.figures import tell_load
from bench.conversation.sayings import Saying
from bench.conversation.served import check_models
from bench.conversation.sounds import speak
from bench.load.process import Crashed
from bench.outages.contenders import CONTENDERS, Contender, Scene
from bench.outages.judging import Report, Verdict, judge
from bench.outages.model import answer
from bench.outages.script import Step, cast
from bench.speech.clips import MissingProgram
from bench.tools import last_line
from tests.fakes.chat_server import ChatServer

RESULTS: Final = Path(__file__).parent / "results"


class Bench:
    def __init__(self, console: Console, settings: Settings, steps: Sequence[Step], keep: Path | None) -> None:
        self._console = console
        self._settings = settings
        self._steps = steps
        self._keep = keep
        self.verdicts: dict[str, list[Verdict]] = {}
        self.reports: dict[str, Report] = {}
        self.crashed: dict[str, str] = {}

    async def run(self, contenders: Sequence[Contender]) -> None:
        workers = Workers(threads=os.cpu_count() or 1)
        try:
            recognizer = MoonshineRecognizer(self._settings.models_dir, workers)
            await asyncio.to_thread(recognizer.load)
            with nullcontext(self._keep) if self._keep else TemporaryDirectory() as name:
                folder = Path(name)
                steps = self._record(folder)
                for contender in contenders:
                    await self._try(contender, folder, steps, recognizer)
        finally:
            await workers.aclose()

    def _record(self, folder: Path) -> list[dict[str, Any]]:
        """Has the questions spoken, and returns the steps as a contender gets them."""
        recorded = []
        for place, step in enumerate(self._steps):
            utterance = speak(Saying(step.question, step.voice, ""), self._settings.models_dir, Random(0))
            path = folder / f"question-{place}.pcm"
            path.write_bytes(utterance.pcm)
            spoken = {"speech": str(path), "ends_at_ms": utterance.ends_at_ms}
            recorded.append({"name": step.name, "faults": step.faults, **spoken})
        return recorded

    async def _try(
        self, contender: Contender, folder: Path, steps: Sequence[Mapping[str, Any]], recognizer: MoonshineRecognizer
    ) -> None:
        self._console.print(f"{contender.name} …")
        try:
            python = contender.prepare(self._console)
            async with ChatServer(answer) as model:
                report = await Scene(folder, self._settings, model.url).call(contender, python, steps)
        except (AssertionError, CalledProcessError, Crashed, OSError) as error:
            self.crashed[contender.name] = last_line(getattr(error, "stderr", None) or str(error))
        else:
            self.reports[contender.name] = report
            self.verdicts[contender.name] = await judge(recognizer, self._steps, report)


def tabulate(steps: Sequence[Step], verdicts: Mapping[str, Sequence[Verdict]]) -> Table:
    """One row per question, and the sums."""
    table = Table("", *verdicts, title="What was heard, and the seconds of silence")
    for place, step in enumerate(steps):
        table.add_row(step.name, *(describe(each[place]) for each in verdicts.values()))
    table.add_section()
    for heading, cells in sums(verdicts).items():
        table.add_row(heading, *cells)
    return table


def describe(verdict: Verdict) -> str:
    told = f"{verdict.outcome} {verdict.silence_s:.1f}"
    told += ", said twice" if verdict.repeated else ""
    told += ", greeted" if verdict.greeted else ""
    return told + (f", {verdict.orders} runs" if verdict.orders > 1 else "")


def sums(verdicts: Mapping[str, Sequence[Verdict]]) -> dict[str, list[str]]:
    calls = list(verdicts.values())
    return {
        "answers lost": [str(sum(each.outcome == "lost" for each in call)) for call in calls],
        "answers cut off": [str(sum(each.outcome == "cut" for each in call)) for call in calls],
        "tool calls run again": [str(sum(max(0, each.orders - 1) for each in call)) for call in calls],
        "greetings repeated": [str(sum(each.greeted for each in call)) for call in calls],
        "seconds of silence": [f"{sum(each.silence_s for each in call):.1f}" for call in calls],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in CONTENDERS], metavar="NAME")
    parser.add_argument("--steps", nargs="+", type=int, help="only these questions of the script, from 0", metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the voices")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where to keep the audio and the logs")
    parser.add_argument("--json", type=Path, default=RESULTS / "continuity.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    if options.keep is not None:
        options.keep.mkdir(parents=True)
    settings = load(None)
    steps = [step for place, step in enumerate(cast(options.seed)) if not options.steps or place in options.steps]
    contenders = [each for each in CONTENDERS if not options.only or each.name in options.only]
    bench = Bench(console, settings, steps, options.keep)
    try:
        check_models(settings.models_dir)
        asyncio.run(bench.run(contenders))
    except (AntiphonError, MissingProgram, OSError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    console.print(tabulate(steps, bench.verdicts))
    for name, reason in bench.crashed.items():
        console.print(f"[red]crashed[/] {name}: {escape(reason)}", soft_wrap=True)
    whole = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": os.getloadavg(),
        "seed": options.seed,
        "configured": {each.name: each.configured for each in contenders},
        "verdicts": msgspec.to_builtins(bench.verdicts),
        "versions": {name: report.versions for name, report in bench.reports.items()},
        "problems": {name: report.problems for name, report in bench.reports.items()},
        "crashed": bench.crashed,
    }
    options.json.write_text(json.dumps(whole, indent=1))
    console.print(f"All of it is in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 1 if bench.crashed else 0


if __name__ == "__main__":
    sys.exit(main())
