"""Measures how many sessions one core carries, what each costs, and how much latency the server adds.

The server has its own process on one core, with SQLite. This process runs all of its clients on another core, and
streams the microphone of every session in real time. First the server has a scripted voice that costs almost nothing,
then its real turn detection. Pipecat's input side gets the same audio. README.md says what is measured.
"""

import argparse
import os
import pstats
import sys
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.vad import Vad
from antiphon.config import load
from antiphon.errors import AntiphonError
from antiphon.weights.folder import locate
from bench.load.figures import Load
from bench.load.measuring import run
from bench.load.microphone import load_recordings
from bench.load.people import People, Scripted, Speaking
from bench.load.phrases import PHRASES, record, try_ears
from bench.load.pipecat import measure_input
from bench.load.process import Crashed, measure_start_s
from bench.load.telling import IDLE, IN_MEMORY, Found, report, write_json
from bench.peers.environment import prepare_peers
from bench.speech.clips import MissingProgram

RESULTS: Final = Path(__file__).parent / "results"
PHRASES_DIR: Final = RESULTS / "phrases"
PIPECAT: Final = Path(__file__).parent / "conversation" / "requirements.txt"
INSTALLING: Final = "Installing Pipecat into bench/.venv-peers. This takes about two minutes, once."
SIZES: Final = (1, 10, 50, 100, 200)
ALL_SIZES: Final = (*SIZES, 400)
SECONDS: Final = 8.0
EARS_SIZES: Final = (1, 10, 50, 100, 150)
EARS_SECONDS: Final = 30.0
PEER_SIZES: Final = (1, 4, 8)
STARTS: Final = 3
PROFILED: Final = 40


class Bench:
    def __init__(self, console: Console, options: argparse.Namespace, core: int) -> None:
        self._console = console
        self._options = options
        self._core = core
        self.found = Found()

    def run_scripted(self) -> None:
        for _ in range(STARTS):
            with TemporaryDirectory(dir=RESULTS) as folder:
                self.found.starts_s.append(measure_start_s(Path(folder), self._core))
        sizes = self._options.sizes or (ALL_SIZES if self._options.all else SIZES)
        for load_ in (*map(Load, sizes), IN_MEMORY, IDLE):
            self._run(Scripted(), load_, self._options.seconds or SECONDS)

    def run_with_ears(self) -> None:
        people = prepare_people(self._console)
        for sessions in self._options.sizes or EARS_SIZES:
            self._run(people, Load(sessions, ears=True), self._options.seconds or EARS_SECONDS)

    def run_peer(self) -> None:
        python = prepare_peers(PIPECAT, lambda: self._console.print(INSTALLING))
        for sessions in PEER_SIZES:
            self._console.print(f"Pipecat, {sessions} …")
            self.found.peers.append(measure_input(python, sessions, PHRASES_DIR, self._core))

    def _run(self, people: People, load_: Load, seconds: float) -> None:
        self._console.print(f"{load_}{' with real listening' if load_.ears else ''} …")
        self.found.runs.append(run(people, load_, seconds, self._core, RESULTS))


def prepare_people(console: Console) -> Speaking:
    """Synthesises the phrases once, and finds where their turns end. Raises `MissingProgram`."""
    settings = load(None)
    recording = record(PHRASES_DIR, settings.models_dir)
    for _ in track(recording, "Speaking", PHRASES, console=console, transient=True):
        pass
    with console.status("Trying the ears"):
        vad = Vad(locate(settings.models_dir, "silero-vad", "silero_vad.onnx"))
        phrases = try_ears(load_recordings(PHRASES_DIR), vad, settings.speech.long_silence_ms)
    return Speaking(phrases, PHRASES_DIR, settings.speech.silences_ms)


def profile(console: Console, people: People, load_: Load, seconds: float, core: int) -> None:
    """Shows the functions in which the server's event loop spends most time. Profiling makes calls look expensive."""
    with TemporaryDirectory(dir=RESULTS) as folder:
        path = Path(folder, "profile")
        run(people, load_, seconds, core, RESULTS, path)
        stats: Any = pstats.Stats(str(path))
    whole_s = stats.total_tt
    table = Table("", title=f"The server's functions by their own time, out of {whole_s:.1f} s")
    for heading in ("share", "calls", "µs a call"):
        table.add_column(heading, justify="right")
    functions = sorted(stats.stats.items(), key=lambda entry: entry[1][2], reverse=True)
    for (file, line, name), (_, calls, own_s, _, _) in functions[:PROFILED]:
        place = f"{'/'.join(Path(file).parts[-2:])}:{line} {name}" if line else name
        table.add_row(escape(place), f"{own_s / whole_s:.1%}", f"{calls:,}", f"{own_s / calls * 1e6:.1f}")
    console.print(table)


def choose_cores() -> tuple[int, int]:
    """Returns the server's core and ours. With one core for both, the figures mean little."""
    *others, own = sorted(os.sched_getaffinity(0))
    return (others[0] if others else own), own


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ears", action="store_true", help="measure only the part with real listening, and Pipecat")
    parser.add_argument("--all", action="store_true", help="also measure 400 sessions with the scripted voice")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="measure these numbers of sessions instead")
    parser.add_argument(
        "--seconds", type=float, help=f"how long each is measured ({SECONDS:g}, {EARS_SECONDS:g} with real listening)"
    )
    parser.add_argument("--profile", type=int, metavar="N", help="show where the server's time goes, and nothing else")
    parser.add_argument("--json", type=Path, default=RESULTS / "sessions.json", metavar="FILE")
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    console = Console()
    RESULTS.mkdir(exist_ok=True)
    core, own_core = choose_cores()
    os.sched_setaffinity(0, {own_core})
    bench = Bench(console, options, core)
    try:
        if options.profile is not None:
            people = prepare_people(console) if options.ears else Scripted()
            profile(console, people, Load(options.profile, ears=options.ears), options.seconds or SECONDS, core)
            return 0
        if not options.ears:
            bench.run_scripted()
        bench.run_with_ears()
        bench.run_peer()
    except (AntiphonError, CalledProcessError, Crashed, MissingProgram, OSError, TimeoutError) as error:
        console.print(f"[red]crashed[/] {escape(str(error) or type(error).__name__)}", soft_wrap=True)
        return 1
    report(console, bench.found)
    write_json(options.json, bench.found)
    problems = [problem for figures in bench.found.runs for problem in figures.problems]
    for problem in problems[:10]:
        console.print(f"[red]problem[/] {escape(problem)}", soft_wrap=True)
    machine = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    console.print(f"All figures are in {options.json}. The machine's load was {machine}.", soft_wrap=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
