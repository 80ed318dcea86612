"""The three parts of a voice's graph, which are made once and kept: `<models_dir>/cache/<voice>/…`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from antiphon.speech.base import SpeechError
from antiphon.weights.cache import Opened, key_of, open_made

ENCODER: Final = "encoder.onnx"
FLOW: Final = "flow.onnx"
DECODER: Final = "decoder.onnx"
PLAN: Final = "plan.json"
SPEAKER: Final = "sid"
"""An input of all three parts, in voices with several speakers."""

_RECIPE: Final = 1
"""Counts up when other parts are made, so that those of an older version are made anew."""


class Plan(Struct, frozen=True):
    """The tensors at the cuts, and how far a frame's surroundings have a say in it."""

    prior: str
    mask: str
    """Into the flow, beside the prior: 1 for every frame."""
    latent: str
    audio: str
    flow_context_frames: int
    decoder_context_frames: int
    frame_samples: int


def open_parts(model: Path, cache_dir: Path, open_folder: Callable[[Path, Plan], Opened]) -> Opened:
    """Opens the folder with the parts. They are made if there are none, or none that can be opened.

    Where the cache cannot be written, they are made for this time only. Raises `SpeechError`.
    """

    def open_planned(folder: Path) -> Opened:
        return open_folder(folder, msgspec.json.decode((folder / PLAN).read_bytes(), type=Plan))

    try:
        return open_made(cache_dir, key_of([model], str(_RECIPE)), partial(_write, model), open_planned)
    except SpeechError:
        raise
    except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
        raise SpeechError(f"The voice {model} cannot be prepared in {cache_dir}: {error}") from error


def _write(model: Path, folder: Path) -> None:
    # `onnx` takes 30 MB and a tenth of a second, and is needed this once.
    from antiphon.speech.engines.piper.graph import write_parts

    write_parts(model, folder)
