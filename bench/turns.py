"""Measures who is cut off while thinking, and how long others wait for the end of their turn.

By the protocol of LiveKit's eot-bench, with silence alone and Smart Turn alone beside our words and melody, and
with the product's own settings. README.md says what is spoken and how it is counted.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.compose import load_tools
from antiphon.config import Settings, load
from antiphon.errors import AntiphonError
from antiphon.models.builtin import BuiltinModel
from antiphon.models.cascade.end_of_turn import Silences, end_probability
from antiphon.models.cascade.endpointer import FRAME_MS, enough_frames
from antiphon.models.completeness import Completeness
from antiphon.tools.spec import Mode
from bench.conversation.figures import Spread, Target, describe_run, tell_load
from bench.conversation.operating_points import PUBLISHED, OperatingPoints, find_operating_points, silence_alone
from bench.conversation.pauses import Examiner, Part, Pause, Spoken, read_corpus, read_people, speak_synthetic
from bench.conversation.sayings import how_many
from bench.conversation.served import check_models
from bench.conversation.sounds import REST_MS
from bench.speech.clips import MissingProgram

RESULTS: Final = Path(__file__).parent / "results"
CUT_OFF: Final = 0.05
_LENGTHS_MS: Final = np.linspace(*REST_MS, 81)
"""Every rest is tried with each of these lengths, so chance plays no part."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A pause, and what the product makes of it."""

    pause: Pause
    completeness: Completeness
    probability: float
    """That the turn is over."""
    silence_ms: int
    """The silence that would end it."""

    @property
    def cut_off(self) -> float:
        """The share of the lengths of a rest at which the turn would end."""
        return float(np.mean(self.silence_ms <= _LENGTHS_MS))


def judge_all(pauses: Iterable[Pause], completeness: Callable[[str], Completeness], silences: Silences) -> list[Judged]:
    judged = []
    for pause in pauses:
        words = completeness(pause.heard)
        silence_ms = enough_frames(silences.after(words, pause.melody)) * FRAME_MS
        judged.append(Judged(pause, words, end_probability(words, pause.melody), silence_ms))
    return judged


def examine(console: Console, spoken: Sequence[Spoken], models_dir: Path, cache: Path) -> list[Pause]:
    """Examines the pauses. What was examined before is read from the cache, as the recogniser takes its time."""
    lines = cache.read_text().splitlines() if cache.exists() else []
    known = dict(msgspec.json.decode(line, type=tuple[str, list[Pause]]) for line in lines)
    missing = [each for each in spoken if each.key not in known]
    if missing:
        examiner = Examiner(models_dir)
        cache.parent.mkdir(parents=True, exist_ok=True)
        with cache.open("ab") as file:
            for each in track(missing, "Listening", console=console, transient=True):
                known[each.key] = examiner.examine(each)
                file.write(msgspec.json.encode((each.key, known[each.key])) + b"\n")
    return [pause for each in spoken for pause in known[each.key]]


def compete(judged: Sequence[Judged]) -> dict[str, OperatingPoints]:
    holds, ends = ([each for each in judged if each.pause.is_end is is_end] for is_end in (False, True))
    return {
        "silence alone": silence_alone(),
        "Smart Turn alone": find_operating_points(
            [each.pause.smart_turn for each in holds], [each.pause.smart_turn for each in ends]
        ),
        "Antiphon: words and melody": find_operating_points(
            [each.probability for each in holds], [each.probability for each in ends]
        ),
    }


def tabulate_points(part: str, judged: Sequence[Judged]) -> Table:
    holds = sum(not each.pause.is_end for each in judged)
    table = Table(part, title=f"{part}: {holds} pauses and {len(judged) - holds} ends, by eot-bench's protocol")
    for heading in ("cut off at 300 ms", "at 600 ms", "delay at 5 %", "at 10 %"):
        table.add_column(heading, justify="right")
    for name, points in compete(judged).items():
        table.add_row(name, *_tell_points(points))
    return table


def tabulate_published() -> Table:
    table = Table("published", title="For comparison: eot-bench's own recordings of people, as published")
    for heading in ("cut off at 300 ms", "at 600 ms", "delay at 5 %", "at 10 %"):
        table.add_column(heading, justify="right")
    for name, *figures in PUBLISHED:
        table.add_row(name, *_tell_points(OperatingPoints(tuple(figures[:2]), tuple(figures[2:]))))
    return table


def _tell_points(points: OperatingPoints) -> Iterator[str]:
    for share in points.cut_offs:
        yield "-" if share is None else f"{share:.1%}"
    for delay_ms in points.delays_ms:
        yield "-" if delay_ms is None else f"{delay_ms:,.0f} ms"


def tabulate_product(judged: Sequence[Judged]) -> Table:
    title = f"The product's settings: rests of {REST_MS[0]} to {REST_MS[1]} ms, and the silence after an end in ms"
    table = Table("", title=title)
    for heading in ("rests", "cut off", "afterthoughts", "cut off", "ends", "p50", "p95", "mean"):
        table.add_column(heading, justify="right")
    for part in Part:
        own = [each for each in judged if each.pause.part is part]
        delays = [float(each.silence_ms) for each in own if each.pause.is_end]
        spread = Spread.of(delays)
        if spread is not None:
            rests, thoughts = (
                [each for each in _rests(own) if each.pause.is_afterthought is is_] for is_ in (False, True)
            )
            cells = [str(len(rests)), _share(rests), str(len(thoughts)), _share(thoughts), str(len(delays))]
            table.add_row(part, *cells, f"{spread.p50:,.0f}", f"{spread.p95:,.0f}", f"{np.mean(delays):,.0f}")
    return table


def tabulate_words(judged: Sequence[Judged]) -> Table:
    table = Table("words", title="By what the words say, all speakers")
    for heading in ("rests", "cut off", "ends", "silence after an end, mean"):
        table.add_column(heading, justify="right")
    for kind in Completeness:
        own = [each for each in judged if each.completeness is kind]
        ends, rests = [each.silence_ms for each in own if each.pause.is_end], _rests(own)
        mean = f"{np.mean(ends):,.0f}" if ends else ""
        table.add_row(kind.name.lower(), str(len(rests)), _share(rests), str(len(ends)), mean)
    return table


def _rests(judged: Iterable[Judged]) -> list[Judged]:
    return [each for each in judged if each.pause.is_rest]


def _share(rests: Sequence[Judged]) -> str:
    return f"{np.mean([each.cut_off for each in rests]):.1%}" if rests else ""


def judge(judged: Sequence[Judged]) -> Iterator[Target]:
    for part in Part:
        cut = [e.cut_off for e in _rests(judged) if e.pause.part is part and not e.pause.is_afterthought]
        if cut and part is not Part.TUNING:
            yield Target(f"{part}: share that is cut off", float(np.mean(cut)), CUT_OFF)


def report(console: Console, judged: Sequence[Judged], settings: Settings) -> None:
    for part in Part:
        own = [each for each in judged if each.pause.part is part and not each.pause.is_afterthought]
        if {each.pause.is_end for each in own} == {False, True}:
            console.print(tabulate_points(part, own))
    console.print(tabulate_published(), tabulate_product(judged), tabulate_words(judged), sep="\n")
    console.print(f"Silences in force: {', '.join(map(str, settings.speech.silences_ms))} ms.")
    for each in _rests(judged):
        if each.cut_off and not each.pause.is_afterthought:
            what = f'{each.pause.speaker}, "{each.pause.heard}" of "{each.pause.text}", at {each.silence_ms} ms'
            console.print(f"cut off: {escape(what)}", soft_wrap=True)
    for target in judge(judged):
        console.print(str(target), soft_wrap=True)


def write_json(path: Path, settings: Settings, seed: int, judged: Sequence[Judged]) -> None:
    parts = {part: [e for e in judged if e.pause.part is part and not e.pause.is_afterthought] for part in Part}
    whole = describe_run(settings, seed) | {
        "targets": msgspec.to_builtins(list(judge(judged))),
        "points": {part: msgspec.to_builtins(compete(own)) for part, own in parts.items() if own},
        "pauses": [
            {
                **msgspec.to_builtins(each.pause),
                "completeness": each.completeness.name,
                "probability": each.probability,
                "silence_ms": each.silence_ms,
            }
            for each in judged
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def gather(options: argparse.Namespace, models_dir: Path) -> Iterator[Spoken]:
    if options.synthetic:
        yield from speak_synthetic(options.synthetic, options.seed, models_dir)
    for folder in options.corpus:
        yield from read_corpus(folder)
    if options.people:
        yield from list(read_people())[: options.people]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--synthetic", type=how_many, default=80, help="turns of the five voices that every bench has")
    parser.add_argument("--corpus", type=Path, action="append", default=[], metavar="DIR", help="speech made elsewhere")
    parser.add_argument("--people", type=how_many, default=0, help="recordings of people, from two Debian packages")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the texts and the voices")
    parser.add_argument("--json", type=Path, default=RESULTS / "turns.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    try:
        check_models(settings.models_dir)
        with console.status("Speaking"):
            spoken = list(gather(options, settings.models_dir))
        pauses = examine(console, spoken, settings.models_dir, RESULTS / "pauses.jsonl")
        assistant = BuiltinModel(load_tools(settings).snapshot())
    except (MissingProgram, OSError, AntiphonError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    silences = Silences(*settings.speech.silences_ms)
    judged = judge_all(pauses, lambda text: assistant.completeness(text, Mode.VOICE), silences)
    report(console, judged, settings)
    write_json(options.json, settings, options.seed, judged)
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
