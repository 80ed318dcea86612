# mypy: ignore-errors
"""The makers' own package, with the same weights."""

from array import array
from pathlib import Path

from moonshine_voice.moonshine_api import ModelArch
from moonshine_voice.transcriber import Transcriber

from bench.speech.answering import Recognize, answer


def main(models_dir: Path) -> None:
    def load() -> Recognize:
        # With threshold 0 it does not look for speech first: each clip is one utterance, and splitting makes it worse.
        package = Transcriber(models_dir / "moonshine-base-en", ModelArch.BASE, options={"vad_threshold": "0.0"})

        def recognize(pcm: bytes, at_once: int) -> str:
            samples = [sample / 32_768 for sample in array("h", pcm)]
            texts = [package.transcribe_without_streaming(samples).lines for _ in range(at_once)]
            return " ".join(line.text for line in texts[0])

        return recognize

    answer(load)
