"""What is known at every pause in recorded speech: the words so far, the sound, and how long the pause lasted.

The audio passes the same voice activity model, endpointer, recogniser and turn detector as in a call, frame by frame,
but not in real time. Whether a policy would have ended the turn there is then arithmetic.
"""

import asyncio
import gzip
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np

from antiphon.audio.turn import TurnDetector
from antiphon.audio.vad import Vad
from antiphon.audio.wav import read_wav
from antiphon.models.cascade.endpointer import FRAME_BYTES, Endpointer, Signal
from antiphon.sound_format import MICROPHONE_HZ, SAMPLE_BYTES
from antiphon.speech.engines.moonshine import MoonshineRecognizer
from antiphon.speech.workers import Workers
from bench.conversation.sayings import (
    REST,
    is_afterthought,
    make_afterthoughts,
    make_hesitant,
    make_questions,
    make_remarks,
)
from bench.conversation.sounds import NoGap, find_gap, insert_rest, quiet
from bench.speech.clips import VOICES, make_clip

PROBE_MS: Final = 1_200
"""How long every rest is while it is examined. The length that a policy meets is drawn afterwards."""
LONGEST_MS: Final = 5_000
SCORE_AT_MS: Final = 200
"""After how much silence eot-bench asks a model."""
WHOLE_S: Final = 8.0
LEAD_MS: Final = 250
END_MS: Final = 1_500

ASTERISK: Final = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
ASTERISK_TEXTS: Final = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
POCKETSPHINX: Final = Path("/usr/share/pocketsphinx/test/data")
CLIP_S: Final = (1.5, 8.0)


class Part(StrEnum):
    SYNTHETIC = "five synthetic voices"
    TUNING = "tuning"
    """The speakers and sentences by which the weights were chosen."""
    HELD_OUT = "held-out"
    PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class Spoken:
    """One turn of a speaker, who says nothing after it."""

    speaker: str
    part: Part
    text: str
    """What is said. `REST` marks where the speaker pauses."""
    pcm: bytes
    is_afterthought: bool = False
    """Whether what comes before the rest is a whole request, so that nothing shows that more will follow."""

    @property
    def key(self) -> str:
        return sha256(self.text.encode() + self.pcm).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Pause:
    speaker: str
    part: Part
    text: str
    heard: str
    """The words up to the pause, as recognised."""
    melody: float
    """The turn detector's score as the product asks for it."""
    smart_turn: float
    """Its score for the whole turn so far, as in eot-bench."""
    lasted_ms: int
    """How long the endpointer counted silence; 0 at the end."""
    is_rest: bool
    """Whether the pause was inserted."""
    is_end: bool
    is_afterthought: bool = False


class Examiner:
    """The engines of a call."""

    def __init__(self, models_dir: Path) -> None:
        smart_turn = models_dir / "smart-turn" / "smart-turn-v3.2-cpu.onnx"
        self._vad = Vad(models_dir / "silero-vad" / "silero_vad.onnx")
        self._detector = TurnDetector(smart_turn)
        self._whole_detector = TurnDetector(smart_turn, context_s=WHOLE_S)
        self._recognizer = MoonshineRecognizer(models_dir, Workers(threads=1))
        self._recognizer.load()

    def examine(self, spoken: Spoken) -> list[Pause]:
        pcm, rests = _with_rests(spoken)
        return list(self._pauses(spoken, pcm, rests))

    def _pauses(self, spoken: Spoken, pcm: bytes, rests: Sequence[int]) -> Iterator[Pause]:
        endpointer, stream = Endpointer(2 * LONGEST_MS), self._vad.stream()
        found: tuple[int, bytes] | None = None
        score: tuple[float, float] = (0.0, 0.0)
        for at in range(0, len(pcm) - FRAME_BYTES + 1, FRAME_BYTES):
            frame = pcm[at : at + FRAME_BYTES]
            silent_ms = endpointer.silence_ms
            match endpointer.hear(self._vad.run([(stream, frame)])[0], frame):
                case Signal.PAUSED:
                    found, score = (at, endpointer.audio), (0.0, 0.0)
                case Signal.RESUMED if found is not None:
                    if silent_ms >= SCORE_AT_MS:
                        yield self._pause(spoken, found, silent_ms, score, rests, is_end=False)
                    found = None
            if found is not None and endpointer.silence_ms >= SCORE_AT_MS and score == (0.0, 0.0):
                score = (
                    self._detector.completeness(endpointer.sentence),
                    self._whole_detector.completeness(endpointer.audio),
                )
        if found is not None and score != (0.0, 0.0):
            yield self._pause(spoken, found, 0, score, (), is_end=True)

    def _pause(
        self,
        spoken: Spoken,
        found: tuple[int, bytes],
        silent_ms: int,
        score: tuple[float, float],
        rests: Sequence[int],
        *,
        is_end: bool,
    ) -> Pause:
        at, audio = found
        is_rest = any(abs(at - rest) < 500 * MICROPHONE_HZ * SAMPLE_BYTES // 1_000 for rest in rests)
        return Pause(
            speaker=spoken.speaker,
            part=spoken.part,
            text=spoken.text,
            heard=asyncio.run(self._recognizer.recognize(audio)),
            melody=score[0],
            smart_turn=score[1],
            lasted_ms=silent_ms,
            is_rest=is_rest,
            is_end=is_end,
            is_afterthought=spoken.is_afterthought and is_rest,
        )


def _with_rests(spoken: Spoken) -> tuple[bytes, list[int]]:
    """Returns the audio with its rests, after and before silence, and where the rests begin, in bytes."""
    samples = np.frombuffer(spoken.pcm, np.int16)
    parts = [part.strip() for part in spoken.text.split(REST)]
    letters = len("".join(parts))
    rests: list[int] = []
    # From the last to the first, so that the places of those before do not move.
    for count in range(len(parts) - 1, 0, -1):
        try:
            first, last = find_gap(samples, len("".join(parts[:count])) / letters, within=0.15)
        except NoGap:
            continue
        stretched = insert_rest(samples, first, last, PROBE_MS)
        rests = [first, *(rest + len(stretched) - len(samples) for rest in rests)]
        samples = stretched
    lead = quiet(LEAD_MS)
    return (
        np.concatenate([lead, samples, quiet(END_MS)]).tobytes(),
        [SAMPLE_BYTES * (len(lead) + rest) for rest in rests],
    )


def speak_synthetic(count: int, seed: int, models_dir: Path) -> Iterator[Spoken]:
    """Speaks with the voices that every bench has: half of the turns have a rest, and an eighth an afterthought."""
    plain = [*make_questions(count // 4, VOICES, seed), *make_remarks(count // 4, VOICES, seed)]
    for saying in [*make_hesitant(count // 2, VOICES, seed), *make_afterthoughts(count // 8, VOICES, seed), *plain]:
        before, rest, after = (part.strip() for part in saying.text.partition(REST))
        pcm = make_clip(f"{before}, {after}" if rest else saying.text, saying.voice, models_dir).pcm
        yield Spoken(saying.voice, Part.SYNTHETIC, saying.text, pcm, is_afterthought(saying))


def read_corpus(folder: Path) -> Iterator[Spoken]:
    """Reads speech that was made elsewhere: `said.json` lists the speaker, the part, the text and the file of each."""
    for row in json.loads((folder / "said.json").read_text()):
        if (file := folder / row["file"]).exists():
            pcm, _ = read_wav(file.read_bytes())
            is_afterthought = row.get("kind") == "afterthought"
            yield Spoken(row["voice"], Part(row["part"]), row["text"], pcm, is_afterthought)


def read_people() -> Iterator[Spoken]:
    """Reads recordings of people that Debian packages bring: the prompts of a telephone exchange, and test data of a
    recogniser. Prompts of which another follows are left out."""
    with gzip.open(ASTERISK_TEXTS, "rt") as lines:
        texts = dict(line.strip().split(": ", 1) for line in lines if ": " in line and not line.startswith(";"))
    for name, text in sorted(texts.items()):
        file = ASTERISK / f"{name}.g722"
        if file.exists() and text.endswith((".", "?")) and not text.endswith("..") and len(text.split()) >= 4:
            yield from _within(Spoken("Allison", Part.PEOPLE, text, _decode(file, "-f", "g722")))
    for file in sorted(POCKETSPHINX.glob("*/*.wav")):
        yield from _within(Spoken(file.parent.name, Part.PEOPLE, file.stem, _decode(file)))


def _within(spoken: Spoken) -> Iterator[Spoken]:
    if CLIP_S[0] <= len(spoken.pcm) / (SAMPLE_BYTES * MICROPHONE_HZ) <= CLIP_S[1]:
        yield spoken


def _decode(file: Path, *form: str) -> bytes:
    command = [
        "ffmpeg",
        "-v",
        "error",
        *form,
        "-i",
        str(file),
        "-f",
        "s16le",
        "-ac",
        "1",
        "-ar",
        str(MICROPHONE_HZ),
        "-",
    ]
    return subprocess.run(command, check=True, capture_output=True).stdout
