"""The list of model files."""

from pathlib import Path

import pytest

from antiphon.weights.folder import State, verify
from antiphon.weights.manifest import KOKORO, MODELS, VOICE, File, Model, WeightsError, find_model

FILES = [(model, file) for model in MODELS.values() for file in model.files]
PULLED = [(model, file) for model, file in FILES if model is not KOKORO]
"""What the tests need. Kokoro is tested in tests/soak."""


def test_the_voice_bundle_has_a_recognizer_and_turn_detection() -> None:
    assert {model.use for model in VOICE} == {"speech to text", "voice activity", "end of turn"}


@pytest.mark.parametrize(("model", "file"), PULLED, ids=lambda each: each.name)
def test_pulled_files_match_the_manifest(models_dir: Path, model: Model, file: File) -> None:
    assert verify(models_dir, model, file) is State.PRESENT


def test_no_two_files_of_a_model_share_a_name() -> None:
    assert len({(model.name, file.name) for model, file in FILES}) == len(FILES)


def test_the_size_of_a_model_is_that_of_its_files() -> None:
    assert find_model("joe").size_bytes == 63_201_294 + 4_794


def test_a_model_is_found_by_its_name() -> None:
    assert find_model("silero-vad").files[0].name == "silero_vad.onnx"


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("jo", "joe"), ("silero", "silero-vad"), ("Moonshine", "moonshine-base-en")]
)
def test_an_unknown_name_is_reported_with_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(WeightsError, match=f"no model called '{wrong}'. The nearest is {nearest};"):
        find_model(wrong)


@pytest.mark.parametrize("name", ["", "../joe", "☃"])
def test_an_invalid_name_is_unknown(name: str) -> None:
    with pytest.raises(WeightsError, match="there is no model called"):
        find_model(name)
