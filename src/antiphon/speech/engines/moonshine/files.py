"""The model's files, and the graphs derived from them: `<models_dir>/cache/moonshine-base-en/…`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import onnxruntime  # type: ignore[import-untyped]

from antiphon.speech.base import SpeechError
from antiphon.weights.cache import Opened, cache_key, open_cached
from antiphon.weights.folder import cache_dir

MODEL: Final = "moonshine-base-en"
ENCODER: Final = "encoder.onnx"
DECODER: Final = "decoder.onnx"

_RECIPE: Final = 3
"""Incremented when the graphs change, so that cached ones are rebuilt."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    encoder: Path
    decoder: Path
    tokenizer: Path
    cache_dir: Path


def find_files(models_dir: Path) -> ModelFiles:
    """Raises `SpeechError` if a file is missing."""
    folder = models_dir / MODEL
    files = ModelFiles(
        folder / "encoder_model.ort",
        folder / "decoder_model_merged.ort",
        folder / "tokenizer.bin",
        cache_dir(models_dir, MODEL),
    )
    for path in (files.encoder, files.decoder, files.tokenizer):
        if not path.is_file():
            raise SpeechError(f"There is no model file at {path}. Get it with `antiphon models pull`.")
    return files


def open_graphs(files: ModelFiles, open_folder: Callable[[Path], Opened]) -> Opened:
    """Opens the cached graphs, and builds them first if needed.

    If the cache is not writable, they are built for this process only. Raises `SpeechError`.
    """
    try:
        key = cache_key((files.encoder, files.decoder), f"{onnxruntime.__version__} {_RECIPE}")
        return open_cached(files.cache_dir, key, partial(_write, files), open_folder)
    except SpeechError:
        raise
    except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
        raise SpeechError(f"The speech recogniser cannot be prepared in {files.cache_dir}: {error}") from error


def _write(files: ModelFiles, folder: Path) -> None:
    # Imported here: `onnx` takes 30 MB and a third of a second, and is needed only once.
    from antiphon.speech.engines.moonshine.graphs import write_graphs

    try:
        write_graphs(files.encoder, files.decoder, folder / ENCODER, folder / DECODER)
    except OSError:
        raise
    except Exception as error:  # onnxruntime and onnx raise unrelated types.
        raise SpeechError(
            f"The files in {files.encoder.parent} are not the Moonshine base model ({error})."
            " Remove them and get them again: `antiphon models pull`."
        ) from error
