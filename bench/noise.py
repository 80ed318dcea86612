"""Counts the word errors of our recogniser in noise, over a telephone line, in a room, and with quiet speech.

README.md says what is compared.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Final

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.audio.pcm import FRAME_BYTES, Signal, from_signal, to_signal
from antiphon.audio.vad import Vad
from antiphon.config import load
from antiphon.models.cascade.endpointer import Endpointer
from antiphon.models.cascade.endpointer import Signal as TurnSignal
from antiphon.sound_format import MICROPHONE_HZ
from antiphon.speech.engines.moonshine.files import find_files
from antiphon.speech.engines.moonshine.model import Moonshine
from antiphon.speech.engines.moonshine.recognizer import TAIL_MS, modernize, transcribe
from antiphon.weights.folder import locate
from bench.speech.clips import VOICES, Clip, MissingProgram, make_clips
from bench.speech.conditions import CLEAN, CONDITIONS, read_people, read_recordings
from bench.speech.sentences import make_sentences
from bench.speech.words import count_errors, error_rate, normalize

RESULTS: Final = Path(__file__).parent / "results"

PLAIN: Final = "as it is"
OURS: Final = "Antiphon"
TURNS: Final = "through endpointing"

TARGETS: Final = {CLEAN: 0.05, "white noise, 20 dB": 0.08, "white noise, 10 dB": 0.20, "telephone": 0.08}
LONGEST_SILENCE_MS: Final = 950
SILENCE_S: Final = (0.5, 1.5)
"""The silence before and after the sentence when it goes through endpointing."""


@dataclass(frozen=True, slots=True)
class Heard:
    condition: str
    voice: str
    said: str
    way: str
    text: str
    cpu_s: float
    audio_s: float


class Bench:
    def __init__(self, models_dir: Path) -> None:
        self._model = Moonshine(find_files(models_dir))
        self._vad = Vad(locate(models_dir, "silero-vad", "silero_vad.onnx"))

    def listen(self, clip: Clip, place: int, condition: str) -> Iterator[Heard]:
        change = CONDITIONS[condition]
        signal = change(to_signal(clip.pcm), np.random.default_rng(place))
        around = change(_with_silence(to_signal(clip.pcm)), np.random.default_rng(place))
        for way, recognize, sound in (
            (PLAIN, self._plain, signal),
            (OURS, self._ours, signal),
            (TURNS, self._through_endpointing, around),
        ):
            begun_s = time.process_time()
            text = recognize(sound)
            cpu_s = time.process_time() - begun_s
            yield Heard(condition, clip.voice, clip.text, way, text, cpu_s, clip.seconds)

    def _plain(self, signal: Signal) -> str:
        """Gives the network the sound as it is. No clip is too long for it."""
        tail = np.zeros(TAIL_MS * MICROPHONE_HZ // 1_000, np.float32)
        return modernize(self._model.transcribe(np.concatenate([signal, tail]), Event(), _unknown()))

    def _ours(self, signal: Signal) -> str:
        return transcribe(self._model, from_signal(signal), Event())

    def _through_endpointing(self, signal: Signal) -> str:
        """Recognises the turns that the endpointer finds, as in a conversation: what was said up to the last pause."""
        stream, endpointer, pcm = self._vad.stream(), Endpointer(LONGEST_SILENCE_MS), from_signal(signal)
        turns, spoken = [], b""
        for at in range(0, len(pcm) - FRAME_BYTES + 1, FRAME_BYTES):
            frame = pcm[at : at + FRAME_BYTES]
            (probability,) = self._vad.run([(stream, frame)])
            happened = endpointer.hear(probability, frame)
            if happened is TurnSignal.PAUSED:
                spoken = endpointer.audio
            elif happened is TurnSignal.ENDED:
                turns.append(spoken)
                endpointer.settle()
        if endpointer.end() is TurnSignal.ENDED:
            turns.append(endpointer.audio)
        return " ".join(transcribe(self._model, turn, Event()) for turn in turns)


def _unknown() -> Signal:
    """Returns a beginning that no other clip has, so that none is recognised faster because of an earlier one."""
    return np.random.default_rng().normal(size=MICROPHONE_HZ).astype(np.float32)


def _with_silence(signal: Signal) -> Signal:
    before, after = (np.zeros(int(part_s * MICROPHONE_HZ), np.float32) for part_s in SILENCE_S)
    whole = np.concatenate([before, signal, after])
    return whole + np.random.default_rng(0).normal(0, 8 / 32_768, len(whole)).astype(np.float32)


def rate(heard: Sequence[Heard], condition: str, way: str) -> float:
    return error_rate((each.said, each.text) for each in heard if (each.condition, each.way) == (condition, way))


def tabulate(heard: Sequence[Heard], title: str) -> Table:
    clips = sum(each.condition == CLEAN and each.way == OURS for each in heard)
    words = sum(len(normalize(each.said)) for each in heard if each.condition == CLEAN and each.way == OURS)
    table = Table("", title=f"{title}: word errors in {clips} clips of {words} words")
    for heading in (PLAIN, OURS, TURNS, "CPU ms a second"):
        table.add_column(heading, justify="right")
    for condition in dict.fromkeys(each.condition for each in heard):
        rates = (f"{rate(heard, condition, way):.1%}" for way in (PLAIN, OURS, TURNS))
        costs = []
        for way in (PLAIN, OURS):
            ours = [each for each in heard if (each.condition, each.way) == (condition, way)]
            costs.append(sum(each.cpu_s for each in ours) / sum(each.audio_s for each in ours) * 1_000)
        table.add_row(condition, *rates, f"{costs[0]:.0f} and {costs[1]:.0f}")
    return table


def judge(heard: Sequence[Heard]) -> Iterator[tuple[str, bool]]:
    for condition, most in TARGETS.items():
        if any(each.condition == condition for each in heard):
            errors = rate(heard, condition, OURS)
            yield f"{condition}: {errors:.1%} word errors; at most {most:.0%} wanted", errors <= most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=50, help="how many clips of synthetic voices")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", help="other voices: VOICE/NN.wav, and texts.json")
    parser.add_argument("--recorded", type=int, default=56, help="how many of the recordings")
    parser.add_argument("--people", type=int, default=24, help="how many recordings of an actress, besides ten others")
    parser.add_argument("--conditions", nargs="*", choices=CONDITIONS, default=list(CONDITIONS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1, help="the seed for the sentences")
    parser.add_argument("--errors", action="store_true", help="show the sentences with errors")
    parser.add_argument("--json", type=Path, default=RESULTS / "noise.json", metavar="FILE")
    options = parser.parse_args()
    console = Console()
    models_dir = load(None).models_dir
    groups: dict[str, list[Clip]] = {}
    try:
        groups["synthetic voices"] = list(
            make_clips(make_sentences(options.clips, options.seed), VOICES, models_dir) if options.clips else ()
        )
        if options.recordings:
            groups["recorded voices"] = read_recordings(options.recordings, options.recorded)
        if options.people:
            groups["people"] = read_people(options.people, options.seed)
    except (MissingProgram, OSError) as error:
        console.print(f"[red]crashed[/] {escape(str(error))}", soft_wrap=True)
        return 1
    bench = Bench(models_dir)
    found: dict[str, list[Heard]] = {}
    for name, clips in groups.items():
        heard = found[name] = []
        for condition in options.conditions:
            for place, clip in enumerate(track(clips, f"{name}, {condition}", console=console, transient=True)):
                heard += bench.listen(clip, place, condition)
        if heard:
            console.print(tabulate(heard, name))
        if options.errors:
            for each in heard:
                if each.way == OURS and count_errors(each.said, each.text):
                    console.print(
                        escape(f"{each.condition} | {each.voice} | {each.said} | {each.text}"), soft_wrap=True
                    )
    together = [each for name, heard in found.items() if name != "people" for each in heard]
    if len([name for name in found if name != "people" and found[name]]) > 1:
        console.print(tabulate(together, "all but people"))
    for what, is_met in judge(together):
        console.print(f"{'[green]met   [/]' if is_met else '[red]missed[/]'} {what}", soft_wrap=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps(
            {
                "seed": options.seed,
                "load": os.getloadavg(),
                "heard": {name: [asdict(each) for each in heard] for name, heard in found.items()},
            },
            indent=1,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
