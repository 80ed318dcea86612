"""The voices that lie in the model folder: `<models_dir>/<id>/*.onnx`, with Piper's `*.onnx.json` beside it."""

from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, field

from antiphon.speech.base import SpeechError, Voice
from antiphon.telemetry.log import get_logger
from antiphon.weights.folder import CACHE, cache_dir

USUAL: Final = "joe"
_MARKS: Final = ("_", "^", "$")
"""What stands between phonemes, at the beginning and at the end."""

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
    """What the file beside a voice says, as far as it is needed here."""

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
    """By id, the usual one first. What is not a voice is left out. Raises `SpeechError` if there is none."""
    configs = sorted(models_dir.glob("*/*.onnx.json")) if models_dir.is_dir() else []
    found: dict[str, VoiceFile] = {}
    for config in configs:
        model = config.with_suffix("")
        id = config.parent.name
        if id != CACHE and id not in found and model.is_file() and (read := _read(config)):
            found[id] = VoiceFile(model, read, _describe(id, read), cache_dir(models_dir, id))
    if not found:
        raise SpeechError(f"There is no Piper voice in {models_dir}. Get one with `antiphon models pull`.")
    return dict(sorted(found.items(), key=lambda item: (item[0] != USUAL, item[0])))


def _read(path: Path) -> Config | None:
    try:
        config = msgspec.json.decode(path.read_bytes(), type=Config)
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("voice_left_out", file=str(path), reason=str(error))
        return None
    if config.phoneme_type != "espeak" or any(not config.phoneme_id_map.get(mark) for mark in _MARKS):
        _log.warning("voice_left_out", file=str(path), reason="its phonemes are not those of espeak")
        return None
    return config


def _describe(id: str, config: Config) -> Voice:
    code = config.language.code if config.language else config.espeak.voice
    language, _, country = code.replace("_", "-").partition("-")
    name = (config.dataset or id).replace("_", " ").title()
    return Voice(id, name, f"{language}-{country.upper()}" if country else language)
