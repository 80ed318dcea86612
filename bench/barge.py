"""Measures how soon an answer stops for somebody who speaks, and what else stops it, by our rule and by others.

Sounds go through Silero and the rule frame by frame. Recorded noises, backchannels and words then go through the whole
cascade, in real time. README.md says how they are made and counted.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.barge import BargeIn
from antiphon.audio.pcm import FRAME_MS, Samples
from antiphon.audio.vad import Vad
from antiphon.config import load
from antiphon.errors import AntiphonError
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.weights.folder import locate
from bench.conversation.figures import Target, describe_run, tell_load
from bench.interruptions import judged, trials
from bench.interruptions.sounds import HUMS, NOISES, PEOPLE, Kind, Sound, Studio
from bench.speech.clips import VOICES, MissingProgram

RESULTS: Final = Path(__file__).parent / "results"
LATE: Final = 0.05
"""The share of speech for which an interruption may come too late."""
MISTAKEN: Final = 0.05
"""The share of hums that may be taken for speech: some people hum as others say "who"."""
IN_TIME_MS: Final = 200
IN_TIME_PLAYING_MS: Final = 300


class Rule(Protocol):
    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool: ...


class InARow:
    """Detects speech when this many frames in a row have at least this probability."""

    def __init__(self, frames: int, probability: float) -> None:
        self._enough = frames
        self._probability = probability
        self._frames = 0

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        self._frames = self._frames + 1 if probability >= self._probability else 0
        return self._frames >= self._enough


def make_ours(answer: bytes | None) -> BargeIn:
    barge = BargeIn()
    for at in range(0, len(answer or b""), 9_000):
        barge.played((answer or b"")[at : at + 9_000], MICROPHONE_HZ)
    return barge


class Holding:
    """Detects when our server stops sending. Whether it was an interruption is decided afterwards."""

    def __init__(self, barge: BargeIn) -> None:
        self._barge = barge

    def hear(self, probability: float, frame: bytes | Samples, *, playing: bool) -> bool:
        return self._barge.hear(probability, frame, playing=playing) or self._barge.may_be_speech


OURS: Final = "Antiphon"
HELD: Final = "holds"
THREE: Final = "3 × 0.5"
PIPECAT: Final = "Pipecat"
RULES: Final[Mapping[str, Callable[[bytes | None], Rule]]] = {
    OURS: make_ours,
    HELD: lambda answer: Holding(make_ours(answer)),
    THREE: lambda _: InARow(3, 0.5),
    # Its `VADParams`: a confidence of 0.7 for 0.2 s. It also requires a volume, which does not help to detect a hum.
    PIPECAT: lambda _: InARow(6, 0.7),
}


@dataclass(frozen=True, slots=True)
class Heard:
    sound: Sound
    delays_ms: Mapping[str, float]
    """The time from the beginning of the sound to the interruption, by rule; infinite if there is none."""

    def is_interrupted(self, rule: str) -> bool:
        return self.delays_ms[rule] < np.inf


def hear_all(sounds: Sequence[Sound], vad: Vad) -> list[Heard]:
    return [
        Heard(sound, {name: _try(make(sound.answer), sound, heard) for name, make in RULES.items()})
        for sound, heard in zip(sounds, _run_vad(sounds, vad), strict=True)
    ]


def _run_vad(sounds: Sequence[Sound], vad: Vad) -> list[list[float]]:
    """Returns the probability of speech of each frame. All sounds are processed in one batch, as on a server."""
    streams = [vad.stream() for _ in sounds]
    heard: list[list[float]] = [[] for _ in sounds]
    for at in range(max(len(sound.frames) for sound in sounds)):
        longer = [place for place, sound in enumerate(sounds) if at < len(sound.frames)]
        batch = [(streams[place], sounds[place].frames[at]) for place in longer]
        for place, probability in zip(longer, vad.run(batch), strict=True):
            heard[place].append(probability)
    return heard


def _try(rule: Rule, sound: Sound, probabilities: Sequence[float]) -> float:
    for count, (probability, frame) in enumerate(zip(probabilities, sound.frames, strict=True), start=1):
        if rule.hear(probability, frame, playing=sound.answer is not None):
            return count * FRAME_MS - sound.began_ms
    return np.inf


@dataclass(frozen=True, slots=True)
class Speed:
    """How soon one rule interrupts for one kind of speech."""

    p50: float
    p95: float
    in_time: float
    """The share of interruptions that came soon enough."""

    def __str__(self) -> str:
        if self.p50 <= 0:
            return "before it"
        return f"{_tell(self.p50)} {_tell(self.p95)} {self.in_time:4.0%}"

    @classmethod
    def of(cls, heard: Sequence[Heard], rule: str) -> "Speed":
        delays = np.array([each.delays_ms[rule] for each in heard])
        limit_ms = IN_TIME_MS if heard[0].sound.kind is Kind.SPEECH else IN_TIME_PLAYING_MS
        p50, p95 = (float(np.quantile(delays, share, method="higher")) for share in (0.5, 0.95))
        return cls(p50, p95, float(np.mean((delays > 0) & (delays <= limit_ms))))


def of_kind(heard: Sequence[Heard], kind: Kind, voice: str | None = None) -> list[Heard]:
    return [each for each in heard if each.sound.kind is kind and voice in (None, each.sound.voice)]


def count_false(heard: Sequence[Heard], kind: Kind, rule: str) -> int:
    return sum(each.is_interrupted(rule) for each in of_kind(heard, kind))


def tabulate_speed(heard: Sequence[Heard], kind: Kind) -> Table:
    limit_ms = IN_TIME_MS if kind is Kind.SPEECH else IN_TIME_PLAYING_MS
    title = f"{kind.capitalize()}: milliseconds from its first sound (p50, p95, share within {limit_ms})"
    table = Table("voice", title=title)
    for heading in ("said", *RULES):
        table.add_column(heading, justify="right")
    for voice in (*VOICES, None):
        own = of_kind(heard, kind, voice)
        speeds = (Speed.of(own, rule) for rule in RULES)
        table.add_row(voice or "all", str(len(own)), *(str(each) for each in speeds))
    return table


def tabulate_false(heard: Sequence[Heard]) -> Table:
    table = Table("", title="Sounds that are not speech to the assistant, and how often they count as speech")
    for heading in ("heard", *RULES):
        table.add_column(heading, justify="right")
    for kind in NOISES:
        count = len(of_kind(heard, kind))
        shares = ((number := count_false(heard, kind, rule), number / count) for rule in RULES)
        table.add_row(kind, str(count), *(f"{number}  {share:4.0%}" for number, share in shares))
    return table


def tell_ratios(heard: Sequence[Heard]) -> Iterator[str]:
    ours = Speed.of(of_kind(heard, Kind.SPEECH), OURS)
    hums = sum(count_false(heard, kind, OURS) for kind in HUMS)
    for rule in (THREE, PIPECAT):
        theirs = Speed.of(of_kind(heard, Kind.SPEECH), rule)
        more = sum(count_false(heard, kind, rule) for kind in HUMS) / max(1, hums)
        yield f"{rule}: {theirs.p50 / ours.p50:.2f} times our median time, {more:.1f} times as many hums count"


def judge(heard: Sequence[Heard]) -> Iterator[Target]:
    for kind, limit_ms in (Kind.SPEECH, IN_TIME_MS), (Kind.PLAYING, IN_TIME_PLAYING_MS):
        late = 1 - Speed.of(of_kind(heard, kind), HELD).in_time
        yield Target(f"{kind.capitalize()}: share with more sent after {limit_ms} ms", late, LATE)
    hums = sum(count_false(heard, kind, OURS) for kind in HUMS) / sum(len(of_kind(heard, kind)) for kind in HUMS)
    yield Target("Hums: share that counts as speech", hums, MISTAKEN)
    for kind in (Kind.DOOR, Kind.KEYS, Kind.OWN, Kind.OWN_ROOM):
        share = count_false(heard, kind, OURS) / len(of_kind(heard, kind))
        yield Target(f"{kind.capitalize()}: share that counts as speech", share, 0.0)


def report(console: Console, heard: Sequence[Heard]) -> None:
    console.print(*(tabulate_speed(heard, kind) for kind in PEOPLE), tabulate_false(heard), sep="\n")
    for each in of_kind(heard, Kind.SPEECH):
        if not 0 < each.delays_ms[OURS] <= IN_TIME_PLAYING_MS:
            late = f'{each.sound.voice}, "{escape(each.sound.text)}"'
            console.print(f"late: {late}, {_tell(each.delays_ms[OURS])} ms", soft_wrap=True)
    for line in tell_ratios(heard):
        console.print(line, soft_wrap=True)
    for target in judge(heard):
        console.print(str(target), soft_wrap=True)


def report_outcomes(console: Console, outcomes: Sequence[judged.Outcome]) -> None:
    console.print(*trials.tabulate(outcomes), sep="\n")
    for line in trials.tell_wrong(outcomes):
        console.print(escape(line), soft_wrap=True)
    for target in trials.judge(outcomes):
        console.print(str(target), soft_wrap=True)


def write_json(
    path: Path, heard: Sequence[Heard], outcomes: Sequence[judged.Outcome], run: Mapping[str, object]
) -> None:
    whole = {
        **run,
        "targets": msgspec.to_builtins([*judge(heard), *trials.judge(outcomes)]),
        "over_answers": [
            {
                "kind": each.trial.kind,
                "voice": each.trial.voice,
                "text": each.trial.text,
                "held_ms": each.held_ms,
                "is_resumed": each.is_resumed,
                "is_interrupted": each.is_interrupted,
                "heard": each.heard,
            }
            for each in outcomes
        ],
        "heard": [
            {
                "kind": each.sound.kind,
                "voice": each.sound.voice,
                "text": each.sound.text,
                "delays_ms": {rule: ms if ms < np.inf else None for rule, ms in each.delays_ms.items()},
            }
            for each in heard
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1))


def _tell(ms: float) -> str:
    return f"{ms:,.0f}" if ms < np.inf else "never"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the seed for the noises, the rooms and the frame offsets")
    parser.add_argument("--json", type=Path, default=RESULTS / "barge.json", metavar="FILE")
    parser.add_argument("--clips", type=Path, metavar="FOLDER", help="more voices: backchannel/*.wav and words/*.wav")
    parser.add_argument("--at-once", type=int, default=4, help="how many answers are spoken over at the same time")
    options = parser.parse_args()
    console = Console()
    settings = load(None)
    try:
        vad = Vad(locate(settings.models_dir, "silero-vad", "silero_vad.onnx"))
        with console.status("Speaking"):
            studio = Studio(settings.models_dir, RESULTS / "barge", options.seed)
            sounds = list(studio.make_all())
            tried = trials.Trials(studio, RESULTS / "recordings", options.clips, options.seed)
            over_answers = list(tried.make_all())
        with console.status("Listening"):
            heard = hear_all(sounds, vad)
        with console.status("Speaking over answers"):
            outcomes = asyncio.run(judged.try_all(settings, over_answers, tried.answer, options.at_once))
    except (MissingProgram, AntiphonError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    report(console, heard)
    report_outcomes(console, outcomes)
    write_json(options.json, heard, outcomes, describe_run(settings, options.seed))
    console.print(f"All figures are in {options.json}. The machine's load was {tell_load()}.", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
