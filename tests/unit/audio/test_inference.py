from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.audio.inference import ModelFileError, open_session


def test_a_model_runs(models_dir: Path) -> None:
    session = open_session(models_dir / "silero-vad" / "silero_vad.onnx")
    inputs: dict[str, NDArray[Any]] = {
        "input": np.zeros((1, 576), np.float32),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16_000, np.int64),
    }
    assert session.run(["output"], inputs)[0].shape == (1, 1)


def test_a_missing_file_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no model file at .*ear\.onnx\. Get it with `antiphon models pull`"):
        open_session(tmp_path / "ear.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model" * 100])
def test_a_broken_file_is_named_with_the_way_to_repair_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ear.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"ear\.onnx cannot be loaded .* Remove it and get it again"):
        open_session(path)


def test_a_folder_is_refused_as_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no model file"):
        open_session(tmp_path)
