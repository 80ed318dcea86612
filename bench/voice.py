"""You stop, and it speaks: how long that takes here, and in a Pipecat pipeline with the same engines.

Both hear the same speech in real time, in turns, so what else the machine does hits both alike. README.md says what is
compared.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.speech.clauses import Clauses
from bench import tools
from bench.conversation.calls import Turn, hold
from bench.conversation.figures import Spread, Target, describe_run, tell_load
from bench.conversation.pipecat_process import PipecatProcess, pipecat
from bench.conversation.sayings import make_questions
from bench.conversation.served import serving
from bench.conversation.sounds import Utterance, speak_all
from bench.load.process import Crashed
from bench.speech.clips import VOICES, MissingProgram

RESULTS: Final = Path(__file__).parent / "results"
SPEECH_MS: Final = range(1_000, 4_001)
P50_MS: Final = 700.0
P95_MS: Final = 1_200.0
RATIO: Final = 0.6


@dataclass(frozen=True, slots=True)
class Pair:
    """The same utterance, said to both."""

    utterance: Utterance
    ours: Turn
    theirs: Turn | None
    is_known: bool
    """Whether our answer began with words that had been said before, which are kept as sound."""


Stage = Callable[[Turn], float | None]
"""From a turn to milliseconds of it."""


def _between(begin: Stage, end: Stage) -> Stage:
    def stage(turn: Turn) -> float | None:
        since, until = begin(turn), end(turn)
        return None if since is None or until is None else until - since

    return stage


def _silence(turn: Turn) -> float | None:
    return turn.silence_ms


def _decided(turn: Turn) -> float | None:
    return turn.decided_ms


def _word(turn: Turn) -> float | None:
    return turn.first_word_ms


def _audio(turn: Turn) -> float | None:
    return turn.first_audio_ms


STAGES: Final[dict[str, Stage]] = {
    "silence": _silence,
    "until the turn and its text are known": _between(_silence, _decided),
    "until the first word": _between(_decided, _word),
    "until the first audio": _between(_word, _audio),
    "from the last sound to the first audio": _audio,
}


def talk(console: Console, url: str, peer: PipecatProcess | None, utterances: Sequence[Utterance]) -> list[Pair]:
    pairs: list[Pair] = []
    begun: set[str] = set()
    for place, utterance in enumerate(track(utterances, "Talking", console=console, transient=True)):
        theirs = peer.hold(utterance) if peer is not None and place % 2 else None
        ours = asyncio.run(hold(url, utterance))
        if peer is not None and theirs is None:
            theirs = peer.hold(utterance)
        first = first_clause(ours.answer)
        pairs.append(Pair(utterance, ours, theirs, first in begun))
        begun.add(first)
    return pairs


def first_clause(answer: str) -> str:
    """As it is given to the voice."""
    clauses = Clauses()
    return next(iter([*clauses.push(answer), *clauses.finish()]), "")


def tabulate(pairs: Sequence[Pair]) -> Table:
    table = Table("", title=f"{len(pairs)} questions, in milliseconds")
    for heading in ("Antiphon p50", "p95", "Pipecat p50", "p95", "ours / theirs p50", "p95"):
        table.add_column(heading, justify="right")
    for name, stage in STAGES.items():
        ours, theirs = spreads(pairs, stage)
        cells = [f"{figure:,.0f}" for each in (ours, theirs) if each for figure in (each.p50, each.p95)]
        if ours and theirs and stage is _audio:
            cells += [f"{ours.p50 / theirs.p50:.2f}", f"{ours.p95 / theirs.p95:.2f}"]
        table.add_row(name, *cells)
    return table


def spreads(pairs: Sequence[Pair], stage: Stage) -> tuple[Spread | None, Spread | None]:
    """Ours, and the peer's."""
    ours = Spread.of([stage(pair.ours) for pair in pairs])
    return ours, Spread.of([stage(pair.theirs) for pair in pairs if pair.theirs is not None])


def judge(pairs: Sequence[Pair]) -> Iterator[Target]:
    ours, theirs = spreads(pairs, _audio)
    if ours is None:
        return
    yield Target("Milliseconds to the first audio, p50", ours.p50, P50_MS)
    yield Target("Milliseconds to the first audio, p95", ours.p95, P95_MS)
    if theirs is not None:
        yield Target("Ours / Pipecat's, p50", ours.p50 / theirs.p50, RATIO)
        yield Target("Ours / Pipecat's, p95", ours.p95 / theirs.p95, RATIO)


def report(console: Console, pairs: Sequence[Pair]) -> None:
    counted = [pair for pair in pairs if not pair.is_known]
    console.print(tabulate(counted))
    known = len(pairs) - len(counted)
    console.print(f"{known} of our answers began with words that were said before, and are left out.")
    for pair in pairs:
        for name, turn in (("Antiphon", pair.ours), ("Pipecat", pair.theirs)):
            if turn is not None and turn.problem:
                console.print(f"{name} has not answered {escape(pair.utterance.saying.text)}: {escape(turn.problem)}")
    for target in judge(counted):
        console.print(str(target), soft_wrap=True)


def write_json(path: Path, settings: Settings, seed: int, pairs: Sequence[Pair]) -> None:
    whole = describe_run(settings, seed) | {
        "targets": msgspec.to_builtins(list(judge([pair for pair in pairs if not pair.is_known]))),
        "said": [
            {
                **msgspec.to_builtins(pair.utterance.saying),
                "ends_at_ms": pair.utterance.ends_at_ms,
                "is_known": pair.is_known,
                "antiphon": msgspec.to_builtins(pair.ours),
                "pipecat": msgspec.to_builtins(pair.theirs),
            }
            for pair in pairs
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of what is said, and by whom")
    parser.add_argument("--alone", action="store_true", help="without Pipecat")
    parser.add_argument("--json", type=Path, default=RESULTS / "voice.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    try:
        with console.status("Speaking"):
            sayings = make_questions(options.questions, VOICES, options.seed)
            utterances = [
                each for each in speak_all(sayings, settings.models_dir, options.seed) if each.ends_at_ms in SPEECH_MS
            ]
        with ExitStack() as stack:
            url = stack.enter_context(serving(settings))
            peer = None
            if not options.alone:
                peer = stack.enter_context(pipecat(tools.prepare_peers(console), settings.models_dir))
            pairs = talk(console, url, peer, utterances)
    except (MissingProgram, Crashed, tools.Crashed, AntiphonError, CalledProcessError, OSError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    report(console, pairs)
    write_json(options.json, settings, options.seed, pairs)
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
