"""Piper's voices: `<models_dir>/<id>/*.onnx` with its `*.onnx.json`, and the parts of the graph derived from it.

The parts are written once and kept in `<models_dir>/cache/<id>/`.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, field

from antiphon.speech.base import SpeechError, Voice
from antiphon.telemetry.log import get_logger
from antiphon.weights.cache import Opened, cache_key, open_cached
from antiphon.weights.folder import CACHE, cache_dir

DEFAULT_VOICE: Final = "joe"
_MARKS: Final = ("_", "^", "$")
"""The symbols between phonemes, at the beginning and at the end."""

_log = get_logger(__name__)


class Audio(Struct, frozen=True):
    sample_rate: Annotated[int, Meta(gt=0)]


class Espeak(Struct, frozen=True):
    voice: str


class Inference(Struct, frozen=True):
    noise_scale: float = 0.667
    length_scale: float = 1.0
    noise_w: float = 0.8


class Language(Struct, frozen=True):
    code: str


class Config(Struct, frozen=True):
    """The parts of a voice's configuration that are used here."""

    audio: Audio
    espeak: Espeak
    phoneme_id_map: dict[str, list[int]]
    inference: Inference = Inference()
    phoneme_type: str = "espeak"
    num_speakers: int = 1
    language: Language | None = None
    dataset: str | None = None
    vowel_clusters: tuple[tuple[str, ...], ...] = field(default=())


class VoiceFile(Struct, frozen=True):
    model: Path
    config: Config
    voice: Voice
    cache_dir: Path


def find_voices(models_dir: Path) -> dict[str, VoiceFile]:
    """Returns the voices by id, the default first, and skips invalid ones. Raises `SpeechError` if there are none."""
    configs = sorted(models_dir.glob("*/*.onnx.json")) if models_dir.is_dir() else []
    found: dict[str, VoiceFile] = {}
    for config in configs:
        model = config.with_suffix("")
        id = config.parent.name
        if id != CACHE and id not in found and model.is_file() and (read := _read(config)):
            found[id] = VoiceFile(model, read, _describe(id, read), cache_dir(models_dir, id))
    if not found:
        raise SpeechError(f"There is no Piper voice in {models_dir}. Get one with `antiphon models pull joe`.")
    return dict(sorted(found.items(), key=lambda item: (item[0] != DEFAULT_VOICE, item[0])))


def _read(path: Path) -> Config | None:
    try:
        config = msgspec.json.decode(path.read_bytes(), type=Config)
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("voice_skipped", file=str(path), reason=str(error))
        return None
    if config.phoneme_type != "espeak" or any(not config.phoneme_id_map.get(mark) for mark in _MARKS):
        _log.warning("voice_skipped", file=str(path), reason="its phonemes are not those of espeak")
        return None
    return config


def _describe(id: str, config: Config) -> Voice:
    code = config.language.code if config.language else config.espeak.voice
    language, _, country = code.replace("_", "-").partition("-")
    name = (config.dataset or id).replace("_", " ").title()
    return Voice(id, name, f"{language}-{country.upper()}" if country else language)


ENCODER: Final = "encoder.onnx"
FLOW: Final = "flow.onnx"
DECODER: Final = "decoder.onnx"
PLAN: Final = "plan.json"
SPEAKER: Final = "sid"
"""An input of all three parts in multi-speaker voices."""

_RECIPE: Final = 1
"""Incremented when the parts change, so that cached ones are rebuilt."""


class Plan(Struct, frozen=True):
    """The tensors where the graph is split, and how much context each frame needs."""

    prior: str
    mask: str
    """A second input of the flow: 1 for every frame."""
    latent: str
    audio: str
    flow_context_frames: int
    decoder_context_frames: int
    frame_samples: int


def open_parts(model: Path, cache_dir: Path, open_folder: Callable[[Path, Plan], Opened]) -> Opened:
    """Opens the cached parts, and writes them first if needed.

    If the cache is not writable, they are written for this process only. Raises `SpeechError`.
    """

    def open_planned(folder: Path) -> Opened:
        return open_folder(folder, msgspec.json.decode((folder / PLAN).read_bytes(), type=Plan))

    try:
        return open_cached(cache_dir, cache_key([model], str(_RECIPE)), partial(_write, model), open_planned)
    except SpeechError:
        raise
    except Exception as error:  # onnxruntime's errors have no common ancestor below this one.
        raise SpeechError(f"The voice {model} cannot be prepared in {cache_dir}: {error}") from error


def _write(model: Path, folder: Path) -> None:
    # Imported here: `onnx` takes 30 MB and a tenth of a second, and is needed only once.
    from antiphon.speech.engines.piper.graph import write_parts

    write_parts(model, folder)
