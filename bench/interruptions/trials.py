"""Sounds over an answer, and figures of what became of it: recorded noises, backchannels, and words."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
from rich.table import Table

from antiphon.audio.pcm import Signal, to_signal
from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ
from bench.conversation.figures import Target
from bench.interruptions.judged import Outcome, Trial
from bench.interruptions.recordings import read_noises, read_sentences
from bench.interruptions.sounds import ANSWERS, ROOMS, Kind, Studio, onset
from bench.speech.clips import JOE

SPEAKERS: Final = (JOE, "slt", "rms", "awb", "en-us", "en-gb", "en-us+f3", "en-us+m3", "en-gb-scotland")
BACKCHANNELS: Final = ("Okay.", "Right.", "Yeah.", "I see.", "Got it.", "Uh-huh.", "Oh, okay.", "Yeah, yeah.")
WORDS: Final = (
    *("What time is it?", "No, I meant Thursday.", "Wait.", "How long will it take?", "And in London?", "Hold on."),
    *("Okay, but what about tomorrow?", "Stop the timer.", "Never mind.", "Who is that?"),
)
STOPS: Final = ("Stop.", "Stop it.", "Be quiet.", "That's enough.")
LEVELS_DBFS: Final = (-20.0, -30.0)
IN_TIME_MS: Final = 200

NOISE, SILENT, BACKCHANNEL, WORD, PERSON, STOP = (
    *("noise", "noise in silence", "backchannel", "words", "words of a person"),
    "stop, over the loudspeaker",
)
INTERRUPTS: Final = (WORD, PERSON, STOP)
HUMAN: Final = ("cough", "sneeze", "laugh", "grunt")


class Trials:
    """Makes the trials. `clips` may hold more voices: clips/backchannel/VOICE__text.wav and clips/words/….wav."""

    def __init__(self, studio: Studio, recordings: Path, clips: Path | None, seed: int) -> None:
        self._studio = studio
        self._recordings = recordings
        self._clips = clips
        self._chance = Random(seed)
        self._levels = cycle(LEVELS_DBFS)
        self.answer = np.concatenate([studio.say(text, JOE) for text in ANSWERS[:3]])

    def make_all(self) -> Iterator[Trial]:
        """Raises `MissingProgram`."""
        for noise in read_noises(self._recordings):
            yield self._make(NOISE, noise.kind, noise.name, noise.signal)
            if noise.kind in HUMAN:
                yield self._make(SILENT, noise.kind, noise.name, noise.signal, over=False)
        for recorded in read_sentences(self._recordings):
            yield self._make(PERSON, "Allison", recorded.name, recorded.signal)
        for voice in SPEAKERS:
            for kind, texts in (BACKCHANNEL, BACKCHANNELS), (WORD, WORDS), (STOP, STOPS):
                for text in texts:
                    yield self._make(kind, voice, text, self._studio.say(text, voice))
        for kind, name in (BACKCHANNEL, "backchannel"), (WORD, "words"):
            for path in sorted(self._clips.glob(f"{name}/*.wav")) if self._clips else ():
                voice, _, text = path.stem.partition("__")
                pcm, hz = read_wav(path)
                yield self._make(kind, voice, text, to_signal(resample(pcm, hz, MICROPHONE_HZ)))

    def _make(self, kind: str, voice: str, text: str, sound: Signal, *, over: bool = True) -> Trial:
        echo = self._studio.loudspeaker(self.answer, ROOMS[Kind.OWN_ROOM]) if kind == STOP else None
        began_ms = onset(sound) * 1_000 / MICROPHONE_HZ
        return Trial(kind, voice, text, sound, next(self._levels), began_ms, over=over, echo=echo)


def of(outcomes: Sequence[Outcome], *kinds: str) -> list[Outcome]:
    return [each for each in outcomes if each.trial.kind in kinds]


def share(outcomes: Sequence[Outcome], what: str) -> float:
    return sum(bool(getattr(each, what)) for each in outcomes) / max(1, len(outcomes))


def held_in_time(outcomes: Sequence[Outcome]) -> float:
    return sum(each.held_ms is not None and each.held_ms <= IN_TIME_MS for each in outcomes) / max(1, len(outcomes))


def tabulate(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    table = _make_table("Sounds over an answer, through the cascade with its VAD and recogniser")
    for kind in (NOISE, SILENT, BACKCHANNEL, WORD, PERSON, STOP):
        if own := of(outcomes, kind):
            table.add_row(*_row(kind, own))
    yield table
    table = _make_table("By kind of noise, and by voice")
    for kind in (NOISE, BACKCHANNEL, WORD):
        for voice in dict.fromkeys(each.trial.voice for each in of(outcomes, kind)):
            table.add_row(*_row(f"{kind}: {voice}", [each for each in of(outcomes, kind) if each.trial.voice == voice]))
    yield table


def _make_table(title: str) -> Table:
    table = Table("", title=title)
    for heading in ("heard", "never held", "held and resumed", "interrupted", "answered", f"held in {IN_TIME_MS} ms"):
        table.add_column(heading, justify="right")
    return table


def _row(name: str, own: Sequence[Outcome]) -> tuple[str, ...]:
    never = sum(each.held_ms is None for each in own)
    resumed = sum(each.is_resumed and not each.is_interrupted for each in own)
    interrupted = sum(each.is_interrupted for each in own)
    answered = sum(bool(each.heard) for each in own)
    return name, *map(str, (len(own), never, resumed, interrupted, answered)), f"{held_in_time(own):.0%}"


def tell_wrong(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yields a line for each sound that had the wrong effect."""
    for each in outcomes:
        trial = each.trial
        is_expected = each.is_interrupted is (trial.kind in INTERRUPTS)
        if not is_expected or (trial.kind in (SILENT, STOP) and each.heard):
            verdict = "interrupted" if each.is_interrupted else "answered" if each.heard else "went on"
            yield f'{verdict}: {trial.kind}, {trial.voice}, "{trial.text}", {trial.dbfs:.0f} dBFS, heard {each.heard}'


def judge(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    yield Target("Noises: share that interrupts", share(of(outcomes, NOISE), "is_interrupted"), 0.1)
    yield Target("Backchannels: share that interrupts", share(of(outcomes, BACKCHANNEL), "is_interrupted"), 0.1)
    yield Target("Noises in silence: share that is answered", share(of(outcomes, SILENT), "heard"), 0.1)
    yield Target("Words: share that does not interrupt", share(of(outcomes, *INTERRUPTS), "goes_on"), 0.02)
    yield Target(f"Words: share not held within {IN_TIME_MS} ms", 1 - held_in_time(of(outcomes, WORD, PERSON)), 0.05)
