"""The model's files, and the graphs that are made of them once and kept: `<models_dir>/cache/moonshine-base-en/…`."""

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

_RECIPE: Final = 2
"""Counts up when other graphs are made, so that those of an older version are made anew."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    encoder: Path
    decoder: Path
    tokenizer: Path
    cache_dir: Path


def find_files(models_dir: Path) -> ModelFiles:
    """Raises `SpeechError` if they are not all there."""
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
    """Opens the folder with the graphs. They are made if there are none, or none that can be opened.

    Where the cache cannot be written, they are made for this time only. Raises `SpeechError`.
    """
    try:
        key = cache_key((files.encoder, files.decoder), f"{onnxruntime.__version__} {_RECIPE}")
        return open_cached(files.cache_dir, key, partial(_write, files), open_folder)
    except SpeechError:
        raise
    except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
        raise SpeechError(f"The speech recogniser cannot be prepared in {files.cache_dir}: {error}") from error


def _write(files: ModelFiles, folder: Path) -> None:
    # `onnx` takes 30 MB and a third of a second, and is needed this once.
    from antiphon.speech.engines.moonshine.graphs import write_graphs

    try:
        write_graphs(files.encoder, files.decoder, folder / ENCODER, folder / DECODER)
    except OSError:
        raise
    except Exception as error:  # As above.
        raise SpeechError(
            f"The files in {files.encoder.parent} are not the Moonshine base model ({error})."
            " Remove them and get them again: `antiphon models pull`."
        ) from error
