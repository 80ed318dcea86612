"""hibari as a `Synthesizer`."""

from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path
from typing import Final

import numpy as np
from hibari.voices import VOICES, voice_path  # type: ignore[import-untyped]
from msgspec import Struct

from antiphon.audio.inference import ModelFileError, Session, open_session
from antiphon.speech.base import Sound, SpeechError, Voice
from antiphon.speech.engines.hibari.vocoder import FRAME_MS, HZ, Spectrum, synthesize
from antiphon.speech.engines.local import LocalSynthesizer
from antiphon.speech.engines.phonemes import phonemizer, to_symbols
from antiphon.speech.engines.synthesis import SAMPLE, Manner, Stretches, chunks, join, measure
from antiphon.speech.workers import Workers

MAX_LOADED: Final = 5
"""How many voices stay loaded, at about 15 MB each: as many as there are."""

CHUNK_FRAMES: Final = (56, 64, 120)
"""0.7 s, of which 0.3 s is silence that is not kept, then 0.8 s and 1.5 s. For a whole utterance the network takes 8 ms
and 5 ms a second; the samples of a chunk take 3 ms a second."""
LEAST_FRAMES: Final = 24
"""0.3 s. A shorter rest is added to the chunk before it."""


class VoiceFile(Struct, frozen=True):
    voice: Voice
    model: Path
    is_british: bool


def find_voices() -> dict[str, VoiceFile]:
    """Returns the voice in the package, and those which the package itself has downloaded on this machine.

    Nothing is downloaded here.
    """
    found: dict[str, VoiceFile] = {}
    for id, about in VOICES.items():
        try:
            model = Path(voice_path(id, download_missing=False))
        except FileNotFoundError:
            continue
        found[id] = VoiceFile(Voice(id, id.title(), about["language"]), model, about["british"])
    return found


class HibariSynthesizer(LocalSynthesizer):
    """Loads each voice at its first use, the first of an accent in a second and the others in a tenth."""

    def __init__(self, workers: Workers, files: Mapping[str, VoiceFile] | None = None) -> None:
        files = files or find_voices()
        voices = [file.voice for file in files.values()]
        super().__init__("hibari", voices, lambda id: HibariVoice(files[id]), workers, max_loaded=MAX_LOADED)


class HibariVoice:
    """A loaded voice. Raises `SpeechError`."""

    def __init__(self, file: VoiceFile) -> None:
        self._phonemizer = phonemizer(british=file.is_british)
        try:
            self._network: Session = open_session(file.model)
            self._manner = self._measure()
        except ModelFileError as error:
            raise SpeechError(f"The voice {file.voice.id} cannot be loaded: {error.__cause__ or error}") from error
        except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
            raise SpeechError(f"The voice {file.model} does not work: {error}") from error

    def speak(self, text: str, speed: float) -> Iterator[Sound]:
        sizes = chain(CHUNK_FRAMES, repeat(CHUNK_FRAMES[-1]))

        def render(phonemes: str) -> Stretches:
            return self._render(phonemes, speed, sizes)

        return join(
            self._phonemizer.phonemize(text), render, hz=HZ, frame_ms=FRAME_MS, manner=self._manner, speed=speed
        )

    def _render(self, phonemes: str, speed: float, sizes: Iterator[int]) -> Stretches:
        spectrum = self._run(phonemes, speed)
        return synthesize(spectrum, chunks(spectrum.frames, sizes, LEAST_FRAMES))

    def _measure(self) -> Manner:
        [phonemes] = self._phonemizer.phonemize(SAMPLE)
        signals = [signal for signal, _ in self._render(phonemes, 1.0, repeat(CHUNK_FRAMES[-1]))]
        return measure(np.concatenate(signals), len(phonemes), HZ)

    def _run(self, phonemes: str, speed: float) -> Spectrum:
        outputs = self._network.run(
            None, {"ids": np.array([to_symbols(phonemes)], np.int64), "speed": np.array([speed], np.float32)}
        )
        harmonics, harmonic_phases, noise, rest, rest_phases, pitch_hz = (output[0] for output in outputs)
        return Spectrum(
            harmonics=harmonics,
            harmonic_phases=harmonic_phases,
            noise=noise,
            rest=rest,
            rest_phases=rest_phases,
            pitch_hz=pitch_hz,
        )
