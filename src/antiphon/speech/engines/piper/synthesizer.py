"""Piper as a `Synthesizer`."""

from pathlib import Path
from typing import Final

from antiphon.speech.engines.local import LocalSynthesizer
from antiphon.speech.engines.piper.files import find_voices
from antiphon.speech.engines.piper.voice import PiperVoice
from antiphon.speech.workers import Workers

MAX_LOADED: Final = 3
"""How many voices stay loaded, at about 130 MB each."""


class PiperSynthesizer(LocalSynthesizer):
    """Loads each voice at its first use, which takes a second."""

    def __init__(self, models_dir: Path, workers: Workers, *, noise_scale: float | None = None) -> None:
        """`noise_scale` overrides the voice's own. With 0 the output is deterministic.

        Raises `SpeechError` if the model folder has no voice.
        """
        files = find_voices(models_dir)
        voices = [file.voice for file in files.values()]
        super().__init__("piper", voices, lambda id: PiperVoice(files[id], noise_scale), workers, max_loaded=MAX_LOADED)
