from pathlib import Path

import numpy as np
import pytest

from antiphon.audio.inference import ModelFileError, open_session
from antiphon.audio.vad import Vad
from tests.unit.audio.conftest import Speaker, at_level, silence, to_frames


def test_probabilities_match_the_official_graph(vad: Vad, speaker: Speaker, models_dir: Path) -> None:
    official = open_session(models_dir / "silero-vad" / "silero_vad.onnx")
    words = at_level(speaker.say("Remind me to call my mother."), -25)
    heard_at_all = np.concatenate([silence(0.3), words, silence(0.3), 8 * words, silence(0.3)])
    # In a still room the model is not asked.
    frames = to_frames(heard_at_all + np.random.default_rng(4).normal(0, 2e-3, len(heard_at_all)).astype(np.float32))
    stream, before, state = vad.stream(), np.zeros((1, 64), np.float32), np.zeros((2, 1, 128), np.float32)
    expected: list[float] = []
    for frame in frames:
        heard = np.concatenate([before, frame[np.newaxis].astype(np.float32) / 32_768], axis=1)
        probability, state = official.run(None, {"input": heard, "state": state, "sr": np.array(16_000)})
        before = heard[:, -64:]
        expected.append(float(probability[0, 0]))
    assert max(expected) > 0.9
    assert [vad.run([(stream, frame)])[0] for frame in frames] == pytest.approx(expected, abs=1e-4)


def test_a_model_of_something_else_is_refused(models_dir: Path) -> None:
    with pytest.raises(ModelFileError, match=r"smart-turn-v3\.2-cpu\.onnx cannot be loaded .*not the graph of Silero"):
        Vad(models_dir / "smart-turn" / "smart-turn-v3.2-cpu.onnx")


def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "silero_vad.onnx"
    path.write_bytes(b"not a model" * 100)
    with pytest.raises(ModelFileError, match="Remove it and get it again"):
        Vad(path)
