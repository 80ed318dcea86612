"""Speech for benchmarks and tests: sentences in several voices, as a recogniser gets them.

Heart is the voice that the project uses, and a student of one of Kokoro's. Those of Piper, flite and espeak-ng are
independent of it. None of them sounds like a person in a room, so the word error rates are those of clean speech.
"""

import hashlib
import io
import os
import shutil
import subprocess
import wave
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np
from piper import PiperVoice, SynthesisConfig

from antiphon.audio.resample import resample
from antiphon.audio.wav import read_wav
from antiphon.sound_format import MICROPHONE_HZ, SPEECH_HZ, write_wav
from antiphon.speech.engines.hibari import HibariSynthesizer
from antiphon.speech.engines.kokoro import KokoroSynthesizer
from antiphon.speech.engines.local import LocalSynthesizer
from antiphon.speech.workers import Workers
from antiphon.weights.folder import cache_dir
from antiphon.weights.manifest import KOKORO_VOICES

LEAD_MS: Final = 250
"""The silence before the first word, as in the cascade. Without it, the recogniser loses first words."""
TAIL_MS: Final = 200

HEART: Final = "heart"
"""The voice of the assistant."""
JOE: Final = "joe"
FLITE: Final = ("slt", "rms", "awb")
"""The voices of an American woman, an American man and a Scotsman."""
ESPEAK: Final = "en-us"
VOICES: Final = (JOE, *FLITE, ESPEAK)
KOKORO: Final = tuple(KOKORO_VOICES)
"""28 voices: American (a) and British (b), female (f) and male (m). They are the most like people, and take half a
second of a core for a second of speech, so they are kept on disk."""

Speak = Callable[[str], bytes]
"""Synthesises a text as a WAV file."""


class MissingProgram(Exception):
    """The program of a voice is not installed."""


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
    """Makes one clip per sentence; the voices take turns. Raises `MissingProgram`."""
    for text, voice in zip(sentences, cycle(voices), strict=False):
        yield make_clip(text, voice, models_dir)


def make_clip(text: str, voice: str, models_dir: Path) -> Clip:
    """Makes a clip. The same text and voice always give the same audio. Raises `MissingProgram`."""
    return Clip(
        text,
        voice,
        _quiet(LEAD_MS) + resample(*read_wav(_speaker(voice, models_dir)(text)), MICROPHONE_HZ) + _quiet(TAIL_MS),
    )


def _speaker(voice: str, models_dir: Path) -> Speak:
    if voice == JOE:
        return _piper(models_dir / JOE / "en_US-joe-medium.onnx")
    if voice == HEART:
        return partial(_speak_as, _hibari(), voice)
    if voice in KOKORO:
        return partial(_kept, voice, models_dir)
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


def _kept(voice: str, models_dir: Path, text: str) -> bytes:
    """Returns what a voice of Kokoro says, from the disk if it was ever said before."""
    name = hashlib.sha256(f"{version('hibari-tts')} {text}".encode()).hexdigest()[:16]
    path = cache_dir(models_dir, "kokoro") / "clips" / voice / f"{name}.wav"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(_speak_as(_kokoro(models_dir), voice, text))
        unfinished.rename(path)
    return path.read_bytes()


def _speak_as(synthesizer: LocalSynthesizer, voice: str, text: str) -> bytes:
    return write_wav(b"".join(sound.pcm for sound in synthesizer.load(voice).speak(text, 1.0)), SPEECH_HZ)


@cache
def _hibari() -> LocalSynthesizer:
    return HibariSynthesizer(Workers(threads=1))


@cache
def _kokoro(models_dir: Path) -> LocalSynthesizer:
    return KokoroSynthesizer(models_dir, Workers(threads=1))


def _run(program: str, *arguments: str) -> bytes:
    if shutil.which(program) is None:
        raise MissingProgram(f"{program} is not installed. On Debian and Ubuntu: apt install flite espeak-ng")
    return subprocess.run([program, *arguments], check=True, capture_output=True).stdout


def _quiet(ms: int) -> bytes:
    """Returns the noise of a good microphone, at -72 dBFS, since digital silence does not occur in practice."""
    return np.random.default_rng(ms).normal(0, 8, ms * MICROPHONE_HZ // 1_000).astype(np.int16).tobytes()
