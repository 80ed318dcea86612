"""The model's files, and the graphs that are made of them once and kept: `<models_dir>/cache/moonshine-base-en/…`."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import onnxruntime  # type: ignore[import-untyped]

from antiphon.speech.base import SpeechError
from antiphon.telemetry.log import get_logger

MODEL: Final = "moonshine-base-en"
CACHE: Final = "cache"
ENCODER: Final = "encoder.onnx"
DECODER: Final = "decoder.onnx"

_RECIPE: Final = 1
"""Counts up when other graphs are made, so that those of an older version are made anew."""
_DRAFTS: Final = "new-"

_log = get_logger(__name__)

Opened = TypeVar("Opened")


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
        models_dir / CACHE / MODEL,
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
        folder = files.cache_dir / _key(files)
        if folder.is_dir():
            try:
                return open_folder(folder)
            except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
                _log.warning("graphs_made_anew", folder=str(folder), reason=str(error))
                shutil.rmtree(folder, ignore_errors=True)
        drafts = _make_drafts_folder(files.cache_dir)
        try:
            _write(files, drafts)
            return open_folder(folder if _keep(drafts, folder) else drafts)
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
    except OSError as error:
        raise SpeechError(f"The speech recogniser cannot be prepared in {files.cache_dir}: {error}.") from error


def _key(files: ModelFiles) -> str:
    digest = hashlib.sha256(f"{onnxruntime.__version__} {_RECIPE}".encode())
    for path in (files.encoder, files.decoder):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _make_drafts_folder(cache_dir: Path) -> Path:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_DRAFTS, dir=cache_dir))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="antiphon-moonshine-"))


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


def _keep(drafts: Path, folder: Path) -> bool:
    """Puts new graphs where they are found the next time, in place of those of other versions."""
    if drafts.parent != folder.parent:
        return False
    # Others may share the models.
    drafts.chmod(0o755)
    for each in drafts.iterdir():
        each.chmod(0o644)
    try:
        drafts.rename(folder)
    except OSError:  # Another process was quicker.
        return folder.is_dir()
    for each in folder.parent.iterdir():
        if each != folder and not each.name.startswith(_DRAFTS):
            shutil.rmtree(each, ignore_errors=True)
    return True
