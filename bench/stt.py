"""Compares our Moonshine with its makers' package: speed, memory and word errors.

All contenders have the same weights and get the same clips in turn, so that other work on the machine affects all
alike. README.md says what is compared.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.config import load
from bench.speech.clips import JOE, VOICES, Clip, MissingProgram, make_clip, make_clips
from bench.speech.contenders import OFFICIAL, OURS, PACKAGE, Contender, Crashed, Heard, Memory, prepare_package, started
from bench.speech.sentences import make_sentences
from bench.speech.words import count_errors, error_rate, normalize

RESULTS: Final = Path(__file__).parent / "results"

UTTERANCES: Final = (
    "What time is it in Tokyo?",
    "Remind me to call my mother tomorrow at noon.",
    "How many days are there between the first of March and the twenty fifth of December?",
    "I would like to know whether it is going to rain in Berlin on Friday afternoon, because I am planning to ride my"
    " bicycle to the lake with two friends and a dog.",
)
"""Utterances of about 2, 3, 4 and 8 seconds."""
TWO: Final = "two at once"
LABELS: Final = {OURS: "Antiphon", OFFICIAL: "official graphs", PACKAGE: "moonshine-voice"}

FASTER: Final = 5.0
SAME: Final = 0.95
"""The share of clips with the same words. Where a word is in doubt, the last bit of a float decides."""
ERROR_RATE: Final = 0.06
RSS_MB: Final = 385.0
"""Half of what the official graphs take with folded constants, which makes them fast too."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one utterance: a list for each contender, round by round."""

    clip: Clip
    heard: dict[str, list[Heard]] = field(default_factory=dict)

    def median_ms(self, name: str) -> float | None:
        return median(each.s for each in self.heard[name]) * 1_000 if name in self.heard else None

    @property
    def times_faster(self) -> float | None:
        ours, theirs = self.median_ms(OURS), self.median_ms(PACKAGE)
        return theirs / ours if ours and theirs else None


@dataclass(frozen=True, slots=True)
class Hearing:
    """A clip, and the text of each contender that recognised it."""

    clip: Clip
    texts: Mapping[str, str]

    def agrees(self, name: str) -> bool:
        return normalize(self.texts[OURS]) == normalize(self.texts[name])


@dataclass(slots=True)
class Found:
    load_s: dict[str, float]
    memory: dict[str, Memory]
    timings: list[Timing]
    hearings: list[Hearing]
    crashed: dict[str, str]

    def heard_by(self, name: str) -> list[Hearing]:
        return [each for each in self.hearings if name in each.texts]


class Bench:
    def __init__(self, console: Console, models_dir: Path, folder: Path) -> None:
        self._console = console
        self._models_dir = models_dir
        self._folder = folder
        self._files: dict[bytes, Path] = {}

    def run(self, clips: Sequence[Clip], package_clips: int, rounds: int) -> Found:
        crashed: dict[str, str] = {}
        with ExitStack() as stack:
            contenders = {name: self._start(stack, name, Path(sys.executable)) for name in (OURS, OFFICIAL)}
            try:
                with self._console.status("Installing moonshine-voice, once"):
                    python = prepare_package()
                contenders[PACKAGE] = self._start(stack, PACKAGE, python)
            except (OSError, CalledProcessError, Crashed) as error:
                crashed[PACKAGE] = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1]
            timings = self._time(contenders, rounds)
            memory = {name: each.memory() for name, each in contenders.items()}
            hearings = self._listen(contenders, clips, package_clips)
        return Found({name: each.load_s for name, each in contenders.items()}, memory, timings, hearings, crashed)

    def _start(self, stack: ExitStack, name: str, python: Path) -> Contender:
        return stack.enter_context(started(name, python, self._models_dir))

    def _time(self, contenders: Mapping[str, Contender], rounds: int) -> list[Timing]:
        timings = [Timing(make_clip(text, JOE, self._models_dir)) for text in UTTERANCES]
        for timing in timings:
            contenders[OURS].hear(self._file(timing.clip))
        for _ in track(range(rounds), "Timing", console=self._console, transient=True):
            for timing in timings:
                file = self._file(timing.clip)
                for name, contender in contenders.items():
                    timing.heard.setdefault(name, []).append(contender.hear(file))
                timing.heard.setdefault(TWO, []).append(contenders[OURS].hear(file, at_once=2))
        return timings

    def _listen(self, contenders: Mapping[str, Contender], clips: Sequence[Clip], package_clips: int) -> list[Hearing]:
        hearings = []
        for place, clip in enumerate(track(clips, "Listening", console=self._console, transient=True)):
            asked = [name for name in contenders if name != PACKAGE or place < package_clips]
            hearings.append(Hearing(clip, {name: contenders[name].hear(self._file(clip)).text for name in asked}))
        return hearings

    def _file(self, clip: Clip) -> Path:
        if clip.pcm not in self._files:
            path = self._folder / f"{len(self._files)}.pcm"
            path.write_bytes(clip.pcm)
            self._files[clip.pcm] = path
        return self._files[clip.pcm]


def tabulate_times(found: Found) -> Table:
    table = Table("audio", title="From a clip to its text, in milliseconds (median)")
    for heading in (LABELS[OURS], TWO, LABELS[OFFICIAL], LABELS[PACKAGE], "times"):
        table.add_column(heading, justify="right")
    for timing in found.timings:
        figures = [timing.median_ms(name) for name in (OURS, TWO, OFFICIAL, PACKAGE)]
        cells = [f"{figure:,.0f}" if figure else "" for figure in figures]
        times = f"{timing.times_faster:.1f}" if timing.times_faster else ""
        table.add_row(f"{timing.clip.seconds:.1f} s", *cells, times)
    return table


def tabulate_processes(found: Found) -> Table:
    table = Table("", title="A process after it has loaded the model and recognised these")
    for heading in ("loading s", "resident MB", "its own MB"):
        table.add_column(heading, justify="right")
    for name, memory in found.memory.items():
        sizes = (f"{size / 1e6:,.0f}" for size in (memory.rss_bytes, memory.own_bytes))
        table.add_row(LABELS[name], f"{found.load_s[name]:.2f}", *sizes)
    return table


def tabulate_errors(found: Found) -> Table:
    table = Table("voice", title="Word errors")
    for heading in ("clips", "words", "errors", "rate"):
        table.add_column(heading, justify="right")
    for voice in (*VOICES, None):
        pairs = [(each.clip.text, each.texts[OURS]) for each in found.hearings if voice in (None, each.clip.voice)]
        words = sum(len(normalize(said)) for said, _ in pairs)
        errors = sum(count_errors(said, text) for said, text in pairs)
        table.add_row(voice or "all", str(len(pairs)), str(words), str(errors), f"{error_rate(pairs):.1%}")
    return table


def tabulate_agreement(found: Found) -> Table:
    table = Table("against", title="The same clips, recognised by the others")
    for heading in ("clips", "same words", "our errors", "their errors"):
        table.add_column(heading, justify="right")
    for name in (OFFICIAL, PACKAGE):
        if shared := found.heard_by(name):
            same = sum(each.agrees(name) for each in shared)
            rates = (error_rate((each.clip.text, each.texts[by]) for each in shared) for by in (OURS, name))
            table.add_row(LABELS[name], str(len(shared)), str(same), *(f"{rate:.1%}" for rate in rates))
    return table


def judge(found: Found) -> Iterator[tuple[str, bool]]:
    """Yields each target that could be measured, and whether it is met."""
    ratios = [timing.times_faster for timing in found.timings if timing.times_faster]
    if ratios:
        least = min(ratios)
        yield f"moonshine-voice takes {least:.1f} times as long or more; {FASTER:g} wanted", least >= FASTER
    official = found.heard_by(OFFICIAL)
    same = sum(each.agrees(OFFICIAL) for each in official) / len(official)
    yield f"the words of the official graphs in {same:.0%} of the clips; {SAME:.0%} wanted", same >= SAME
    rate = error_rate((each.clip.text, each.texts[OURS]) for each in found.hearings)
    yield f"{rate:.1%} word errors in {len(found.hearings)} clips; at most {ERROR_RATE:.0%} wanted", rate <= ERROR_RATE
    rss_mb = found.memory[OURS].rss_bytes / 1e6
    yield f"{rss_mb:.0f} MB resident; at most {RSS_MB:g} wanted", rss_mb <= RSS_MB


def write_json(path: Path, found: Found, seed: int) -> None:
    whole: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
        "seed": seed,
        "loading_s": found.load_s,
        "memory": {name: asdict(memory) for name, memory in found.memory.items()},
        "timings": [
            {
                "said": timing.clip.text,
                "seconds": timing.clip.seconds,
                "rounds": {name: [asdict(each) for each in rounds] for name, rounds in timing.heard.items()},
            }
            for timing in found.timings
        ],
        "heard": [{"voice": each.clip.voice, "said": each.clip.text, **each.texts} for each in found.hearings],
        "targets": [{"what": what, "met": is_met} for what, is_met in judge(found)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def report(console: Console, found: Found) -> None:
    console.print(
        tabulate_times(found), tabulate_processes(found), tabulate_errors(found), tabulate_agreement(found), sep="\n"
    )
    for what, is_met in judge(found):
        console.print(f"{'[green]met   [/]' if is_met else '[red]missed[/]'} {what}", soft_wrap=True)
    for name, reason in found.crashed.items():
        console.print(f"[red]crashed[/] {LABELS[name]}: {escape(reason)}", soft_wrap=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=100, help="how many clips to count word errors in")
    parser.add_argument("--package-clips", type=int, default=20, help="how many of them moonshine-voice recognises too")
    parser.add_argument("--rounds", type=int, default=5, help="the number of timing rounds")
    parser.add_argument("--seed", type=int, default=1, help="the seed for the sentences")
    parser.add_argument("--json", type=Path, default=RESULTS / "stt.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    models_dir = load(None).models_dir
    speaking = make_clips(make_sentences(options.clips, options.seed), VOICES, models_dir)
    try:
        clips = list(track(speaking, "Speaking", options.clips, console=console, transient=True))
        with TemporaryDirectory() as folder:
            found = Bench(console, models_dir, Path(folder)).run(clips, options.package_clips, options.rounds)
    except (MissingProgram, Crashed) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    report(console, found)
    write_json(options.json, found, options.seed)
    load_now = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    console.print(f"All figures are in {options.json}. The machine's load was {load_now}.", soft_wrap=True)
    return 1 if found.crashed else 0


if __name__ == "__main__":
    sys.exit(main())
