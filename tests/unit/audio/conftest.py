"""Real speech for ears: the local voice, and the same voice higher and lower for other people."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from piper import PiperVoice
from piper.config import SynthesisConfig

from antiphon.audio.pcm import FRAME_SAMPLES, Samples, Signal, to_signal
from antiphon.audio.resample import resample
from antiphon.audio.vad import Vad
from antiphon.sound_format import MICROPHONE_HZ

VOICE_HZ: Final = 22_050

Say = Callable[..., Samples]


class Speaker:
    def __init__(self, path: Path) -> None:
        self._voice = PiperVoice.load(path)

    @cache  # noqa: B019
    def speak(self, text: str) -> Samples:
        """At the voice's own rate. The same text is the same sound each time."""
        steady = SynthesisConfig(noise_scale=0, noise_w_scale=0)
        return np.concatenate([chunk.audio_int16_array for chunk in self._voice.synthesize(text, steady)])

    def say(self, text: str, height: float = 1.0) -> Signal:
        """As a microphone gives it. Somebody with a height of 1.15 is smaller than the voice, and quicker."""
        pcm = resample(self.speak(text).tobytes(), round(VOICE_HZ * height), MICROPHONE_HZ)
        return to_signal(pcm)


@pytest.fixture(scope="session")
def speaker(models_dir: Path) -> Speaker:
    return Speaker(models_dir / "joe" / "en_US-joe-medium.onnx")


@pytest.fixture(scope="session")
def vad(models_dir: Path) -> Vad:
    return Vad(models_dir / "silero-vad" / "silero_vad.onnx")


def at_level(signal: Signal, dbfs: float) -> Signal:
    """With its spoken parts at that level."""
    spoken = signal[np.abs(signal) > np.abs(signal).max() / 30]
    return signal * np.float32(10 ** (dbfs / 20) / np.sqrt(np.square(spoken).mean()))


def to_frames(signal: Signal) -> list[Samples]:
    """Whole frames of PCM16; the rest is left out. No microphone is without noise, so there is a little."""
    noise = np.random.default_rng(1).normal(0, 1e-4, len(signal))
    samples = np.clip((signal + noise) * 32_768, -32_768, 32_767).astype(np.int16)
    return list(samples[: len(samples) - len(samples) % FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES))


def silence(seconds: float) -> Signal:
    return np.zeros(round(seconds * MICROPHONE_HZ), np.float32)
