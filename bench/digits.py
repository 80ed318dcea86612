"""Counts how many spoken digit strings are exact: as they are first heard, and after they were read back.

The numbers are random, said in groups with pauses, and go through endpointing. A simulated person hears the value that
is read back, corrects the group that is wrong, or says all of it again. README.md says more.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.pcm import FRAME_BYTES
from antiphon.audio.vad import Vad
from antiphon.config import load
from antiphon.models.builtin.collecting import ReadBack, Settled, Wanted, ask_again, resolve
from antiphon.models.cascade.end_of_turn import COLLECTING_MS
from antiphon.models.cascade.endpointer import Endpointer, Signal
from antiphon.models.expectation import Expectation
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine.files import find_files
from antiphon.speech.engines.moonshine.model import Moonshine
from antiphon.speech.engines.moonshine.recognizer import transcribe
from antiphon.weights.folder import locate
from antiphon.words.spelling import group_digits
from bench.speech.clips import HEART, VOICES, MissingProgram, make_clip

RESULTS: Final = Path(__file__).parent / "results"
DIGITS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LENGTHS: Final = (4, 6, 7, 10, 11)
PAUSES_MS: Final = (300, 600, 900)
"""Between groups."""
QUIET: Final = 300
"""The largest sample that counts as silence."""
MAX_ANSWERS: Final = 4
"""After so many answers the person gives up."""
TARGET: Final = 0.97


@dataclass(frozen=True, slots=True)
class Collected:
    """How a number was collected."""

    voice: str
    number: str
    heard: tuple[str, ...]
    """What was recognised, answer by answer."""
    first: str | None
    """What was read back after the first answer; empty if that could not be read."""
    settled: str | None
    """What the person said yes to."""

    @property
    def is_exact_at_once(self) -> bool:
        return self.first == self.number

    @property
    def is_exact(self) -> bool:
        return self.settled == self.number


class Bench:
    def __init__(self, models_dir: Path, seed: int) -> None:
        self._models_dir = models_dir
        self._model = Moonshine(find_files(models_dir))
        self._vad = Vad(locate(models_dir, "silero-vad", "silero_vad.onnx"))
        self._chance = Random(seed)

    def collect(self, voice: str, number: str) -> Collected:
        asked: Wanted | ReadBack = Wanted(Expectation.DIGITS)
        heard: list[str] = []
        first: str | None = None
        groups = [" ".join(DIGITS[int(digit)] for digit in group) for group in group_digits(number)]
        answer = [f"{group}." for group in groups]
        for _ in range(MAX_ANSWERS):
            for text in self._hear(voice, answer):
                heard.append(text)
                step = resolve(asked, text, is_spoken=True) or ask_again(asked, text)
                if step is None or isinstance(step, Settled):
                    return Collected(voice, number, tuple(heard), first, None if step is None else step.value)
                asked = step
            first = first or (asked.value if isinstance(asked, ReadBack) else "")
            if isinstance(asked, ReadBack) and asked.value == number:
                # Whether a yes is heard is measured elsewhere.
                settled = resolve(asked, "Yes.", is_spoken=True)
                value = settled.value if isinstance(settled, Settled) else None
                return Collected(voice, number, tuple(heard), first, value)
            answer = _correct(asked, number, groups)
        return Collected(voice, number, tuple(heard), first, None)

    def _hear(self, voice: str, groups: Sequence[str]) -> list[str]:
        """Recognises the turns that the endpointer finds, with the silence that ends an answer of digits."""
        pcm = _quiet(500)
        for group in groups:
            said = make_clip(group.capitalize(), voice, self._models_dir).pcm
            pcm += _trim(said) + _quiet(self._chance.choice(PAUSES_MS))
        pcm += _quiet(1_500)
        stream, endpointer = self._vad.stream(), Endpointer(COLLECTING_MS[Expectation.DIGITS])
        turns: list[bytes] = []
        spoken = b""
        for at in range(0, len(pcm) - FRAME_BYTES + 1, FRAME_BYTES):
            frame = pcm[at : at + FRAME_BYTES]
            (probability,) = self._vad.run([(stream, frame)])
            happened = endpointer.hear(probability, frame)
            if happened is Signal.PAUSED:
                spoken = endpointer.audio
            elif happened is Signal.ENDED:
                turns.append(spoken)
                endpointer.settle()
        if endpointer.end() is Signal.ENDED:
            turns.append(endpointer.audio)
        return [text for turn in turns if (text := transcribe(self._model, turn, Event()))] or [""]


def _correct(asked: Wanted | ReadBack, number: str, groups: Sequence[str]) -> list[str]:
    """Says what a person would who heard the question: the one group that is wrong, or all digits one by one."""
    wanted = group_digits(number)
    if isinstance(asked, ReadBack):
        got = group_digits(asked.value)
        wrong = [at for at, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]]
        if list(map(len, got)) == list(map(len, wanted)) and len(wrong) == 1:
            return [f"No, {groups[wrong[0]]}."]
    again = [", ".join(group.split()) + "." for group in groups]
    return [f"No, {again[0]}", *again[1:]] if isinstance(asked, ReadBack) else again


def _trim(pcm: bytes) -> bytes:
    """Leaves out the silence that a voice adds to its sentences."""
    samples = np.frombuffer(pcm, np.int16)
    loud = np.flatnonzero(np.abs(samples) > QUIET)
    return samples[loud[0] : loud[-1] + 1].tobytes()


def _quiet(ms: int) -> bytes:
    count = ms * MICROPHONE_HZ // 1_000
    return np.random.default_rng(count).normal(0, 8, count).astype(np.int16).tobytes()


def make_numbers(count: int, chance: Random) -> Iterator[str]:
    for length in (chance.choice(LENGTHS) for _ in range(count)):
        yield "".join(str(chance.randrange(10)) for _ in range(length))


def tabulate(collected: Sequence[Collected]) -> Table:
    table = Table("voice", title=f"{len(collected)} numbers")
    for heading in ("numbers", "exact at once", "exact after read-back", "answers", "wrong"):
        table.add_column(heading, justify="right")
    for voice in (*dict.fromkeys(each.voice for each in collected), "all"):
        those = [each for each in collected if voice in (each.voice, "all")]
        table.add_row(
            voice,
            str(len(those)),
            f"{sum(each.is_exact_at_once for each in those) / len(those):.1%}",
            f"{sum(each.is_exact for each in those) / len(those):.1%}",
            f"{sum(len(each.heard) for each in those) / len(those):.2f}",
            str(sum(each.settled is not None and not each.is_exact for each in those)),
        )
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=60)
    parser.add_argument("--voices", nargs="*", default=[*VOICES, HEART])
    parser.add_argument("--seed", type=int, default=1, help="the seed for the numbers")
    parser.add_argument("--errors", action="store_true", help="show the numbers that were not exact at once")
    parser.add_argument("--json", type=Path, default=RESULTS / "digits.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    numbers = list(make_numbers(options.numbers, Random(options.seed)))
    bench = Bench(load(None).models_dir, options.seed)
    began_s = time.process_time()
    try:
        pairs = list(zip(cycle(options.voices), numbers, strict=False))
        collected = [bench.collect(*pair) for pair in track(pairs, "digits", console=console, transient=True)]
    except MissingProgram as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    console.print(tabulate(collected))
    for each in collected if options.errors else ():
        if not each.is_exact_at_once:
            console.print(escape(f"{each.voice} | {each.number} | {each.heard} | {each.settled}"), soft_wrap=True)
    exact = sum(each.is_exact for each in collected) / len(collected)
    mark = "[green]met   [/]" if exact >= TARGET else "[red]missed[/]"
    console.print(f"{mark} {exact:.1%} exact after read-back; at least {TARGET:.0%} wanted", soft_wrap=True)
    console.print(f"{time.process_time() - began_s:.0f} s of processor time")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps({"seed": options.seed, "collected": [asdict(each) for each in collected]}, indent=1)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
