"""Speech to text: our Moonshine against its makers' package, and how many words it gets wrong.

Both have the same weights and hear the same clips, one after the other, so that what else the machine does hits both
alike. README.md says what is compared.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
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
from bench.speech.contenders import OURS, PEER, Contender, Crashed, Heard, Memory, prepare_peer, started
from bench.speech.sentences import make_sentences
from bench.speech.words import count_errors, error_rate, normalize

RESULTS: Final = Path(__file__).parent / "results"
PEER_REQUIREMENT: Final = "moonshine-voice"

UTTERANCES: Final = (
    "What time is it in Tokyo?",
    "Remind me to call my mother tomorrow at noon, please.",
    "How many days are there between the first of March and the twenty fifth of December?",
    "I would like to know whether it is going to rain in Berlin on Friday afternoon, because I am planning to ride my"
    " bicycle to the lake with two friends and a dog.",
)
"""From short to long, about 2, 3, 4 and 8 seconds."""

FASTER: Final = 5.0
ERROR_RATE: Final = 0.06
RSS_MB: Final = 385.0
"""Half of what the official graphs take when their constants are folded."""


@dataclass(slots=True)
class Timing:
    """Of one utterance, round by round."""

    clip: Clip
    ours: list[Heard] = field(default_factory=list)
    ours_two: list[Heard] = field(default_factory=list)
    """Two of them at the same time, until both are heard."""
    peer: list[Heard] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    load_s: dict[str, float] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    timings: list[Timing] = field(default_factory=list)
    heard: list[tuple[Clip, str]] = field(default_factory=list)
    compared: list[tuple[Clip, str, str]] = field(default_factory=list)
    """The clip, our text, the peer's text."""
    crashed: dict[str, str] = field(default_factory=dict)


class Bench:
    def __init__(self, console: Console, models_dir: Path, folder: Path) -> None:
        self._console = console
        self._models_dir = models_dir
        self._folder = folder
        self._files: dict[bytes, Path] = {}
        self.found = Found()

    def run(self, clips: Sequence[Clip], peer_clips: int, rounds: int) -> Found:
        with ExitStack() as stack:
            ours = stack.enter_context(started(OURS, Path(sys.executable), self._models_dir))
            peer = self._start_peer(stack)
            contenders = {OURS: ours} | ({PEER: peer} if peer else {})
            self.found.load_s = {name: each.load_s for name, each in contenders.items()}
            self._time(ours, peer, rounds)
            self.found.memory = {name: each.memory() for name, each in contenders.items()}
            self._listen(ours, peer, clips, peer_clips)
        return self.found

    def _start_peer(self, stack: ExitStack) -> Contender | None:
        try:
            with self._console.status(f"Installing {PEER_REQUIREMENT}, once"):
                python = prepare_peer()
            return stack.enter_context(started(PEER, python, self._models_dir))
        except (OSError, CalledProcessError, Crashed) as error:
            self.found.crashed[PEER] = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1]
            return None

    def _time(self, ours: Contender, peer: Contender | None, rounds: int) -> None:
        timings = [Timing(make_clip(text, JOE, self._models_dir)) for text in UTTERANCES]
        self.found.timings = timings
        for timing in timings:
            ours.hear(self._file(timing.clip))
        for _ in track(range(rounds), "Timing", console=self._console, transient=True):
            for timing in timings:
                file = self._file(timing.clip)
                timing.ours.append(ours.hear(file))
                timing.ours_two.append(ours.hear(file, at_once=2))
                if peer is not None:
                    timing.peer.append(peer.hear(file))

    def _listen(self, ours: Contender, peer: Contender | None, clips: Sequence[Clip], peer_clips: int) -> None:
        for place, clip in enumerate(track(clips, "Listening", console=self._console, transient=True)):
            text = ours.hear(self._file(clip)).text
            self.found.heard.append((clip, text))
            if peer is not None and place < peer_clips:
                self.found.compared.append((clip, text, peer.hear(self._file(clip)).text))

    def _file(self, clip: Clip) -> Path:
        if clip.pcm not in self._files:
            path = self._folder / f"{len(self._files)}.pcm"
            path.write_bytes(clip.pcm)
            self._files[clip.pcm] = path
        return self._files[clip.pcm]


def median_ms(heard: Sequence[Heard]) -> float:
    return median(each.s for each in heard) * 1_000


def tabulate_times(found: Found) -> Table:
    table = Table("", title="From a clip to its text, in milliseconds (median)")
    for heading in ("seconds", "ours", "lowest", "two at once", "package", "its CPU", "package / ours"):
        table.add_column(heading, justify="right")
    for timing in found.timings:
        ours = median_ms(timing.ours)
        row = [
            timing.clip.text if len(timing.clip.text) < 40 else f"{timing.clip.text[:37]}…",
            f"{timing.clip.seconds:.1f}",
        ]
        row += [
            f"{ours:,.0f}",
            f"{min(each.s for each in timing.ours) * 1_000:,.0f}",
            f"{median_ms(timing.ours_two):,.0f}",
        ]
        if timing.peer:
            peer = median_ms(timing.peer)
            cpu = median(each.cpu_s for each in timing.peer) * 1_000
            row += [f"{peer:,.0f}", f"{cpu:,.0f}", f"{peer / ours:.1f}"]
        table.add_row(*row)
    return table


def tabulate_processes(found: Found) -> Table:
    table = Table("", title="A process that has loaded the model and heard these")
    for heading in ("loading s", "resident MB", "its own MB"):
        table.add_column(heading, justify="right")
    for name, label in ((OURS, "Antiphon"), (PEER, "moonshine-voice")):
        if name in found.memory:
            memory = found.memory[name]
            sizes = (f"{size / 1e6:,.0f}" for size in (memory.rss_bytes, memory.own_bytes))
            table.add_row(label, f"{found.load_s[name]:.2f}", *sizes)
    return table


def tabulate_errors(found: Found) -> Table:
    table = Table("voice", title="Word errors")
    for heading in ("clips", "words", "errors", "rate"):
        table.add_column(heading, justify="right")
    for voice in (*VOICES, None):
        pairs = [(clip.text, text) for clip, text in found.heard if voice in (None, clip.voice)]
        words = sum(len(normalize(said)) for said, _ in pairs)
        errors = sum(count_errors(said, text) for said, text in pairs)
        table.add_row(voice or "all", str(len(pairs)), str(words), str(errors), f"{error_rate(pairs):.1%}")
    return table


def differences(found: Found) -> list[tuple[Clip, str, str]]:
    return [each for each in found.compared if normalize(each[1]) != normalize(each[2])]


def judge(found: Found) -> Iterator[tuple[str, bool]]:
    """Each target that could be measured, and whether it is met."""
    ratios = [median_ms(timing.peer) / median_ms(timing.ours) for timing in found.timings if timing.peer]
    if ratios:
        yield f"the package takes {min(ratios):.1f} times as long or more, {FASTER:g} wanted", min(ratios) >= FASTER
        ours, theirs = (error_rate((each[0].text, each[at]) for each in found.compared) for at in (1, 2))
        same = len(found.compared) - len(differences(found))
        yield (
            f"the same words in {same} of {len(found.compared)} clips; {ours:.1%} errors, the package {theirs:.1%}",
            ours <= theirs or same == len(found.compared),
        )
    rate = error_rate((clip.text, text) for clip, text in found.heard)
    yield f"{rate:.1%} word errors in {len(found.heard)} clips, at most {ERROR_RATE:.0%} wanted", rate <= ERROR_RATE
    rss_mb = found.memory[OURS].rss_bytes / 1e6
    yield f"{rss_mb:.0f} MB resident, at most {RSS_MB:g} wanted", rss_mb <= RSS_MB


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
                "text": timing.clip.text,
                "seconds": timing.clip.seconds,
                **{name: [asdict(each) for each in getattr(timing, name)] for name in ("ours", "ours_two", "peer")},
            }
            for timing in found.timings
        ],
        "heard": [{"voice": clip.voice, "said": clip.text, "heard": text} for clip, text in found.heard],
        "package": [{"said": clip.text, "ours": ours, "package": theirs} for clip, ours, theirs in found.compared],
        "targets": [{"what": what, "met": is_met} for what, is_met in judge(found)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def report(console: Console, found: Found) -> None:
    console.print(tabulate_times(found), tabulate_processes(found), tabulate_errors(found))
    for clip, ours, theirs in differences(found):
        console.print(f"[dim]{clip.voice}[/] {escape(clip.text)}", soft_wrap=True)
        console.print(f"    ours: {escape(ours)}\n    package: {escape(theirs)}", soft_wrap=True)
    for what, is_met in judge(found):
        console.print(f"{'[green]met   [/]' if is_met else '[red]missed[/]'} {what}", soft_wrap=True)
    for name, reason in found.crashed.items():
        console.print(f"[red]crashed[/] {name}: {escape(reason)}", soft_wrap=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=100, help="for the word errors; the voices take turns")
    parser.add_argument("--peer-clips", type=int, default=20, help="of these for the package, which is slow")
    parser.add_argument("--rounds", type=int, default=5, help="of timing")
    parser.add_argument("--seed", type=int, default=1, help="of the sentences")
    parser.add_argument("--json", type=Path, default=RESULTS / "stt.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    models_dir = load(None).models_dir
    sentences = make_sentences(options.clips, options.seed)
    with TemporaryDirectory() as folder:
        try:
            speaking = track(
                make_clips(sentences, VOICES, models_dir), "Speaking", options.clips, console=console, transient=True
            )
            found = Bench(console, models_dir, Path(folder)).run(list(speaking), options.peer_clips, options.rounds)
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
