"""Kokoro as a `Synthesizer`: one network, and a table of styles for each voice."""

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from antiphon.audio.inference import Session, open_session
from antiphon.audio.pcm import Signal
from antiphon.speech.base import Sound, SpeechError, Voice
from antiphon.speech.engines.local import LocalSynthesizer
from antiphon.speech.engines.phonemes import phonemizer, to_symbols
from antiphon.speech.engines.synthesis import Manner, Stretches, chunks, join, measure
from antiphon.speech.workers import Workers
from antiphon.weights.folder import locate
from antiphon.weights.manifest import KOKORO_PARTS, KOKORO_VOICES, WeightsError

DEFAULT_VOICE: Final = "af_heart"
MODEL: Final = "kokoro"
MAX_LOADED: Final = 28
"""A voice takes half a megabyte."""

HZ: Final = 24_000
FRAME_SAMPLES: Final = 600
_FRAME_MS: Final = FRAME_SAMPLES * 1_000 / HZ
_CHUNK_FRAMES: Final = 20
_LEAST_FRAMES: Final = 12
_STYLE_SIZE: Final = 256

_SAMPLE: Final = "It is half past ten."
"""What a voice says to find out how loud it is. A longer sentence would take seconds."""
_LANGUAGES: Final = {"a": "en-US", "b": "en-GB"}
"""By the first letter of a voice's name."""

Styles = NDArray[np.float32]
"""A style for each length of an utterance, in phonemes."""


class KokoroSynthesizer(LocalSynthesizer):
    """Loads the network at the first use, which takes three seconds and 360 MB."""

    def __init__(self, models_dir: Path, workers: Workers) -> None:
        """Raises `SpeechError` if the model files are missing."""
        try:
            self._parts = [locate(models_dir, MODEL, part) for part in KOKORO_PARTS]
            self._styles = {id: locate(models_dir, MODEL, f"{id}.bin") for id in KOKORO_VOICES}
        except WeightsError as error:
            raise SpeechError(f"Kokoro cannot speak: {error}") from error
        self._network: Session | None = None
        self._opening = Lock()
        voices = [
            Voice(id, id.partition("_")[2].title(), _LANGUAGES[id[0]])
            for id in sorted(self._styles, key=lambda id: (id != DEFAULT_VOICE, id))
        ]
        super().__init__("kokoro", voices, self._open_voice, workers, max_loaded=MAX_LOADED)

    def _open_voice(self, id: str) -> "KokoroVoice":
        with self._opening:
            if self._network is None:
                # The model is stored in parts, since its packages are limited in size.
                self._network = open_session(
                    self._parts[0], lambda first: b"".join([first, *(part.read_bytes() for part in self._parts[1:])])
                )
        styles = np.fromfile(self._styles[id], np.float32).reshape(-1, _STYLE_SIZE)
        return KokoroVoice(self._network, styles, is_british=_LANGUAGES[id[0]] == "en-GB")


class KokoroVoice:
    def __init__(self, network: Session, styles: Styles, *, is_british: bool) -> None:
        self._network = network
        self._styles = styles
        self._phonemizer = phonemizer(british=is_british)
        self._manner: Manner | None = None

    def speak(self, text: str, speed: float) -> Iterator[Sound]:
        if self._manner is None:
            [sample] = self._phonemizer.phonemize(_SAMPLE)
            self._manner = measure(self._run(sample, 1.0), len(sample), HZ)

        def render(phonemes: str) -> Stretches:
            return _stretches(self._run(phonemes, speed))

        yield from join(
            self._phonemizer.phonemize(text), render, hz=HZ, frame_ms=_FRAME_MS, manner=self._manner, speed=speed
        )

    def _run(self, phonemes: str, speed: float) -> Signal:
        symbols = to_symbols(phonemes)
        style = self._styles[min(len(symbols) - 2, len(self._styles)) - 1]
        (signal,) = self._network.run(
            None,
            {
                "tokens": np.array([symbols], np.int64),
                "style": style[np.newaxis],
                "speed": np.array([speed], np.float32),
            },
        )
        return signal


def _stretches(signal: Signal) -> Stretches:
    frames = signal.size // FRAME_SAMPLES
    for first, last in chunks(frames, repeat(_CHUNK_FRAMES), _LEAST_FRAMES):
        yield signal[first * FRAME_SAMPLES : last * FRAME_SAMPLES], frames - last
