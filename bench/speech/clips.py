"""Speech for benches and tests: sentences spoken by several voices, as a recogniser is given them.

Piper's voice is the project's own. Those of flite and espeak-ng have nothing to do with it: they come from others, or
from nobody. None of them sounds like a person in a room, so the word error rates are those of clean speech.
"""

import io
import shutil
import subprocess
import wave
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np
from piper import PiperVoice, SynthesisConfig

from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ

LEAD_MS: Final = 250
"""Before the first word, as the cascade gives it. Without it the recogniser loses first words."""
TAIL_MS: Final = 200

JOE: Final = "joe"
FLITE: Final = ("slt", "rms", "awb")
"""An American woman, an American man and a Scotsman."""
ESPEAK: Final = "en-us"
VOICES: Final = (JOE, *FLITE, ESPEAK)

Speak = Callable[[str], bytes]
"""From a text to a WAV file."""


class MissingProgram(Exception):
    """A voice's program is not installed."""


@dataclass(frozen=True, slots=True)
class Clip:
    text: str
    voice: str
    pcm: bytes
    """PCM16, mono, little-endian, 16 kHz."""

    @property
    def seconds(self) -> float:
        return len(self.pcm) / (2 * MICROPHONE_HZ)


def make_clips(sentences: Sequence[str], voices: Sequence[str], models_dir: Path) -> Iterator[Clip]:
    """One a sentence; the voices take turns. Raises `MissingProgram`."""
    for text, voice in zip(sentences, cycle(voices), strict=False):
        yield make_clip(text, voice, models_dir)


def make_clip(text: str, voice: str, models_dir: Path) -> Clip:
    """The same text in the same voice always sounds the same. Raises `MissingProgram`."""
    return Clip(
        text,
        voice,
        _quiet(LEAD_MS) + resample(*read_wav(_speaker(voice, models_dir)(text)), MICROPHONE_HZ) + _quiet(TAIL_MS),
    )


def _speaker(voice: str, models_dir: Path) -> Speak:
    if voice == JOE:
        return _piper(models_dir / JOE / "en_US-joe-medium.onnx")
    if voice in FLITE:
        return partial(_run, "flite", "-voice", voice, "-o", "/dev/stdout", "-t")
    return partial(_run, "espeak-ng", "-v", voice, "--stdout")


@cache
def _piper(model: Path) -> Speak:
    voice = PiperVoice.load(model)
    steady = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)

    def speak(text: str) -> bytes:
        file = io.BytesIO()
        with wave.open(file, "wb") as wav:
            voice.synthesize_wav(text, wav, steady)
        return file.getvalue()

    return speak


def _run(program: str, *arguments: str) -> bytes:
    if shutil.which(program) is None:
        raise MissingProgram(f"{program} is not installed. On Debian and Ubuntu: apt install flite espeak-ng")
    return subprocess.run([program, *arguments], check=True, capture_output=True).stdout


def _quiet(ms: int) -> bytes:
    """Nothing but the noise of a good microphone, at -72 dBFS: digital silence is not heard in nature."""
    return np.random.default_rng(ms).normal(0, 8, ms * MICROPHONE_HZ // 1_000).astype(np.int16).tobytes()
