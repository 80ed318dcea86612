"""Measures the time from the end of speech to the start of the answer, here and in Pipecat with the same engines.

Both get the same speech in real time, in turns, so other work on the machine affects both alike. README.md says what is
compared.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
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
from bench.conversation.calls import Turn, hold
from bench.conversation.figures import Spread, Target, describe_run, tell_load
from bench.conversation.pipecat_process import PipecatProcess, pipecat
from bench.conversation.sayings import how_many, make_questions
from bench.conversation.served import check_models, serving
from bench.conversation.sounds import Utterance, speak_all
from bench.load.process import Crashed
from bench.peers.environment import prepare_peers
from bench.speech.clips import VOICES, MissingProgram
from bench.tools import Crashed as PeerCrashed
from bench.tools import last_line

RESULTS: Final = Path(__file__).parent / "results"
REQUIREMENTS: Final = Path(__file__).parent / "conversation" / "requirements.txt"
INSTALLING: Final = "Installing Pipecat into bench/.venv-peers. This takes about two minutes, once."
SPEECH_MS: Final = range(1_000, 4_001)
P50_MS: Final = 260.0
P95_MS: Final = 700.0
RATIO: Final = 0.42
PEOPLE: Final = 4
"""How many people talk at once at the end, each saying something else."""
EACH: Final = 6


@dataclass(frozen=True, slots=True)
class Pair:
    """The same utterance, spoken to both."""

    utterance: Utterance
    ours: Turn
    theirs: Turn | None
    is_known: bool
    """Whether our answer began with words that had been said before, whose audio is cached."""

    @property
    def is_counted(self) -> bool:
        return not self.is_known and all(turn is None or turn.cut_off_ms is None for turn in (self.ours, self.theirs))


Measure = Callable[[Turn], float | None]
STAGES: Final = ("silence", "text and decision", "first word", "first audio")


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


async def talk_at_once(url: str, utterances: Sequence[Utterance]) -> list[list[Turn]]:
    """Returns the turns by person. Each says one thing after the other without waiting for anybody else."""

    async def say_all(own: Sequence[Utterance]) -> list[Turn]:
        return [await hold(url, utterance) for utterance in own]

    return await asyncio.gather(*(say_all(utterances[place::PEOPLE]) for place in range(PEOPLE)))


def first_clause(answer: str) -> str:
    """Returns the first clause as the voice gets it."""
    clauses = Clauses()
    return next(iter([*clauses.push(answer), *clauses.finish()]), "")


def tabulate(pairs: Sequence[Pair]) -> Table:
    table = Table("", title=f"From the last sound of {len(pairs)} questions, in milliseconds")
    for heading in ("Antiphon p50", "p95", "Pipecat p50", "p95"):
        table.add_column(heading, justify="right")
    measures: dict[str, Measure] = {name: partial(_stage_ms, at) for at, name in enumerate(STAGES)}
    for name, measure in (measures | {"in all": _whole_ms}).items():
        cells = (f"{figure:,.0f}" for each in spreads(pairs, measure) if each for figure in (each.p50, each.p95))
        table.add_row(name, *cells)
    return table


def tabulate_people(turns: Sequence[Sequence[Turn]]) -> Table:
    table = Table("person", title=f"{len(turns)} people at once, milliseconds to the first audio")
    for heading in ("said", "answered", "p50", "worst"):
        table.add_column(heading, justify="right")
    for number, own in enumerate(turns, start=1):
        waits = [turn.first_audio_ms for turn in own if turn.first_audio_ms is not None]
        spread = Spread.of(waits)
        cells = (f"{spread.p50:,.0f}", f"{max(waits):,.0f}") if spread else ("", "")
        table.add_row(str(number), str(len(own)), str(len(waits)), *cells)
    return table


def _stage_ms(at: int, turn: Turn) -> float | None:
    return turn.stages_ms[at]


def _whole_ms(turn: Turn) -> float | None:
    return turn.first_audio_ms


def spreads(pairs: Sequence[Pair], measure: Measure) -> tuple[Spread | None, Spread | None]:
    """Returns our spread and the peer's."""
    ours = Spread.of([measure(pair.ours) for pair in pairs])
    return ours, Spread.of([measure(pair.theirs) for pair in pairs if pair.theirs is not None])


def judge(pairs: Sequence[Pair]) -> Iterator[Target]:
    ours, theirs = spreads(pairs, _whole_ms)
    if ours is None:
        return
    yield Target("Milliseconds to the first audio, p50", ours.p50, P50_MS)
    yield Target("Milliseconds to the first audio, p95", ours.p95, P95_MS)
    if theirs is not None:
        yield Target("Ours / Pipecat's, p50", ours.p50 / theirs.p50, RATIO)
        yield Target("Ours / Pipecat's, p95", ours.p95 / theirs.p95, RATIO)


def report(console: Console, pairs: Sequence[Pair]) -> None:
    counted = [pair for pair in pairs if pair.is_counted]
    console.print(tabulate(counted))
    known = sum(pair.is_known for pair in pairs)
    console.print(f"Left out: {known} of our answers, which began with words that were said before.")
    for pair in pairs:
        for name, turn in (("Antiphon", pair.ours), ("Pipecat", pair.theirs)):
            if turn is not None and (turn.problem or turn.cut_off_ms is not None):
                what = turn.problem or "was answered before it was over, and is left out."
                console.print(f"{name}, {escape(pair.utterance.saying.text)} {escape(what)}", soft_wrap=True)
    for target in judge(counted):
        console.print(str(target), soft_wrap=True)


def write_json(
    path: Path, settings: Settings, seed: int, pairs: Sequence[Pair], people: Sequence[Sequence[Turn]]
) -> None:
    whole = describe_run(settings, seed) | {
        "targets": msgspec.to_builtins(list(judge([pair for pair in pairs if pair.is_counted]))),
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
        "people": msgspec.to_builtins(people),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def open_peer(console: Console, stack: ExitStack, models_dir: Path) -> PipecatProcess:
    """Starts the peer. Raises `PeerCrashed` if that fails."""
    try:
        python = prepare_peers(REQUIREMENTS, lambda: console.print(INSTALLING))
    except (OSError, CalledProcessError) as error:
        reason = last_line(getattr(error, "stderr", None) or str(error))
        raise PeerCrashed(f"Pipecat is not installed: {reason}") from error
    return stack.enter_context(pipecat(python, models_dir))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--questions", type=how_many, default=40, help="how many questions; only those of 1 to 4 s are said"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed for the texts and the voices")
    parser.add_argument("--alone", action="store_true", help="without Pipecat")
    parser.add_argument("--json", type=Path, default=RESULTS / "voice.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    try:
        check_models(settings.models_dir)
        with console.status("Speaking"):
            sayings = make_questions(options.questions + EACH * PEOPLE, VOICES, options.seed)
            utterances = speak_all(sayings, settings.models_dir, options.seed)
            alone, at_once = utterances[: options.questions], utterances[options.questions :]
        with ExitStack() as stack:
            url = stack.enter_context(serving(settings))
            peer = None if options.alone else open_peer(console, stack, settings.models_dir)
            pairs = talk(console, url, peer, [each for each in alone if each.ends_at_ms in SPEECH_MS])
            with console.status(f"{PEOPLE} people at once"):
                people = asyncio.run(talk_at_once(url, at_once))
    except (MissingProgram, Crashed, PeerCrashed, AntiphonError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    report(console, pairs)
    console.print(tabulate_people(people))
    write_json(options.json, settings, options.seed, pairs, people)
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
