"""Measures who is cut off while thinking, and how long others wait: speech with a rest in it, and speech without.

Everything is spoken to `antiphon serve` in real time, over its socket. README.md says how it is made and counted.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from bench.conversation.calls import Turn, hold
from bench.conversation.figures import Spread, Target, describe_run, tell_load
from bench.conversation.sayings import how_many, make_afterthoughts, make_hesitant, make_questions, make_remarks
from bench.conversation.served import check_models, serving
from bench.conversation.sounds import REST_MS, Utterance, speak_all
from bench.load.process import Crashed
from bench.speech.clips import VOICES, MissingProgram

RESULTS: Final = Path(__file__).parent / "results"
CUT_OFF: Final = 0.05
WAIT_MS: Final = 700.0


class Kind(StrEnum):
    HESITANT = "with a rest"
    AFTERTHOUGHT = "with an afterthought"
    QUESTION = "question"
    REMARK = "other remark"


@dataclass(frozen=True, slots=True)
class Said:
    kind: Kind
    utterance: Utterance
    turn: Turn

    @property
    def is_cut_off(self) -> bool:
        return self.turn.cut_off_ms is not None


async def say_all(url: str, utterances: Sequence[tuple[Kind, Utterance]], jobs: int, console: Console) -> list[Said]:
    free = asyncio.Semaphore(jobs)

    async def say(kind: Kind, utterance: Utterance) -> Said:
        async with free:
            turn = await hold(url, utterance)
        progress.advance(bar)
        return Said(kind, utterance, turn)

    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("Talking", total=len(utterances))
        return await asyncio.gather(*(say(kind, utterance) for kind, utterance in utterances))


def make_utterances(hesitant: int, plain: int, seed: int, models_dir: Path) -> list[tuple[Kind, Utterance]]:
    """Makes the utterances in random order, so that a busy moment of the machine does not affect only one kind."""
    kinds = {
        Kind.HESITANT: make_hesitant(hesitant, VOICES, seed),
        Kind.AFTERTHOUGHT: make_afterthoughts(hesitant // 8, VOICES, seed),
        Kind.QUESTION: make_questions(plain - plain // 2, VOICES, seed),
        Kind.REMARK: make_remarks(plain // 2, VOICES, seed),
    }
    made = [(kind, each) for kind, sayings in kinds.items() for each in speak_all(sayings, models_dir, seed)]
    Random(seed).shuffle(made)
    return made


def tabulate_settings(settings: Settings) -> Table:
    table = Table("setting", "value", title="The settings in force")
    for name, value in settings.speech.model_dump().items():
        table.add_row(f"speech.{name}", str(value))
    return table


def tabulate_cuts(said: Sequence[Said]) -> Table:
    table = Table("", title=f"Speech with one rest of {REST_MS[0]} to {REST_MS[1]} ms")
    for heading in ("said", "cut off", "share", "taken back", "not answered"):
        table.add_column(heading, justify="right")
    hesitant = [each for each in said if each.kind is Kind.HESITANT]
    rows = {voice: [each for each in hesitant if each.utterance.saying.voice == voice] for voice in VOICES}
    rows |= {"all": hesitant, "afterthoughts": [each for each in said if each.kind is Kind.AFTERTHOUGHT]}
    for name, own in rows.items():
        cut = sum(each.is_cut_off for each in own)
        share = f"{cut / len(own):.0%}" if own else ""
        taken_back, failed = sum(each.turn.taken_back > 0 for each in own), sum(bool(each.turn.problem) for each in own)
        table.add_row(name, str(len(own)), str(cut), share, str(taken_back), str(failed))
    return table


def tabulate_waits(said: Sequence[Said]) -> Table:
    table = Table("", title="From the last sound, in milliseconds")
    for heading in ("said", "decided p50", "p95", "first audio p50", "p95"):
        table.add_column(heading, justify="right")
    for kind in (Kind.QUESTION, Kind.REMARK, Kind.HESITANT):
        own = [each.turn for each in said if each.kind is kind and not each.is_cut_off]
        spreads = Spread.of([turn.decided_ms for turn in own]), Spread.of([turn.first_audio_ms for turn in own])
        cells = (f"{figure:,.0f}" for each in spreads if each for figure in (each.p50, each.p95))
        table.add_row(kind, str(len(own)), *cells)
    return table


def judge(said: Sequence[Said]) -> Iterator[Target]:
    hesitant = [each for each in said if each.kind is Kind.HESITANT]
    if hesitant:
        cut = sum(each.is_cut_off for each in hesitant)
        yield Target("Share that is cut off early", cut / len(hesitant), CUT_OFF)
    waits = Spread.of([each.turn.first_audio_ms for each in said if each.kind is Kind.QUESTION])
    if waits is not None:
        yield Target("Questions: ms to the first audio, p50", waits.p50, WAIT_MS)


def report(console: Console, settings: Settings, said: Sequence[Said]) -> None:
    console.print(tabulate_settings(settings), tabulate_cuts(said), tabulate_waits(said), sep="\n")
    for each in said:
        saying = each.utterance.saying
        if each.is_cut_off:
            rest = f'"{escape(saying.text)}", a rest of {each.utterance.rest_ms} ms'
            console.print(f"cut off: {saying.voice}, {rest}", soft_wrap=True)
        if each.turn.problem:
            problem = f'"{escape(saying.text)}": {escape(each.turn.problem)}'
            console.print(f"no answer: {saying.voice}, {problem}", soft_wrap=True)
    for target in judge(said):
        console.print(str(target), soft_wrap=True)


def write_json(path: Path, settings: Settings, seed: int, said: Sequence[Said]) -> None:
    whole = describe_run(settings, seed) | {
        "targets": msgspec.to_builtins(list(judge(said))),
        "said": [
            {
                **msgspec.to_builtins(each.utterance.saying),
                "kind": each.kind,
                "rest_ms": each.utterance.rest_ms,
                "ends_at_ms": each.utterance.ends_at_ms,
                **msgspec.to_builtins(each.turn),
            }
            for each in said
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hesitant", type=how_many, default=80, help="utterances with a rest in them")
    parser.add_argument("--plain", type=how_many, default=40, help="utterances without, half of them questions")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the texts, the voices and the rests")
    parser.add_argument("--jobs", type=how_many, default=1, help="conversations at the same time; two need idle cores")
    parser.add_argument("--json", type=Path, default=RESULTS / "turns.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    try:
        check_models(settings.models_dir)
        with console.status("Speaking"):
            utterances = make_utterances(options.hesitant, options.plain, options.seed, settings.models_dir)
        with serving(settings) as url:
            said = asyncio.run(say_all(url, utterances, options.jobs, console))
    except (MissingProgram, Crashed, AntiphonError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    report(console, settings, said)
    write_json(options.json, settings, options.seed, said)
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
