from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from antiphon.audio.inference import ModelFileError, Session, open_session
from antiphon.audio.pcm import Signal
from antiphon.audio.smart_turn import COUNTS, FEATURES, PLACES, rewrite
from antiphon.audio.turn import TurnDetector, choose_places, features
from tests.unit.audio.conftest import Speaker, silence

SENTENCES = [
    "What time is it in Tokyo?",
    "Please remind me to call my mother tomorrow morning.",
    "I would like to know the weather in Paris.",
    "Turn off the light in the kitchen.",
]
WHOLE = 400


def without_rounding(official: bytes) -> bytes:
    """The official graph, whose weights are rounded to 8 bits, without the rounding of all that it computes."""
    model = onnx.load_from_string(official)
    weights = {each.name for each in model.graph.initializer}
    sources = {node.output[0]: node for node in model.graph.node}
    exact = {
        node.output[0]: sources[node.input[0]].input[0]
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] not in weights
    }
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = exact.get(name, name)
    return bytes(model.SerializeToString())


@pytest.fixture(scope="module")
def path(models_dir: Path) -> Path:
    return models_dir / "smart-turn" / "smart-turn-v3.2-cpu.onnx"


@pytest.fixture(scope="module")
def official(path: Path) -> Session:
    return open_session(path, rewrite=without_rounding)


@pytest.fixture(scope="module")
def rewritten(path: Path) -> Session:
    return open_session(path, rewrite=rewrite)


@pytest.fixture(scope="module")
def turns(speaker: Speaker) -> list[Signal]:
    """Whole ones, and their first halves and thirds."""
    spoken = [speaker.say(text) for text in SENTENCES]
    parts = [speech[: len(speech) // part] for speech in spoken for part in (1, 2, 3)]
    return [np.concatenate([silence(0.2), part, silence(0.15)]) for part in parts]


def judge_officially(official: Session, turn: Signal) -> float:
    return float(official.run(None, {"input_features": features(turn, 2 * WHOLE)[np.newaxis]})[0].item())


def judge(rewritten: Session, turn: Signal, places: NDArray[np.int64], counts: Signal) -> float:
    return judge_features(rewritten, features(turn, 2 * len(places) + 2)[np.newaxis], places, counts)


def judge_features(rewritten: Session, heard: Signal, places: NDArray[np.int64], counts: Signal) -> float:
    return float(rewritten.run(None, {FEATURES: heard, PLACES: places, COUNTS: counts})[0].item())


def test_with_all_positions_it_agrees_with_the_official_network(
    official: Session, rewritten: Session, turns: list[Signal]
) -> None:
    expected = np.array([judge_officially(official, turn) for turn in turns])
    everywhere = np.arange(WHOLE), np.ones(WHOLE, np.float32)
    found = np.array([judge(rewritten, turn, *everywhere) for turn in turns])
    assert expected.min() < 0.1
    assert expected.max() > 0.9
    # Rounded to 8 bits in other places, answers near the middle are not the same.
    assert np.abs(found - expected).max() < 0.2
    assert np.abs(found - expected).mean() < 0.04


def test_with_few_positions_it_judges_no_more_turns_complete_than_the_official_network(
    official: Session, rewritten: Session, turns: list[Signal]
) -> None:
    expected = np.array([judge_officially(official, turn) for turn in turns])
    found = np.array([judge(rewritten, turn, *choose_places(len(turn))) for turn in turns])
    whole = np.arange(len(turns)) % 3 == 0
    assert found[whole] == pytest.approx(expected[whole], abs=0.05)
    assert (found - expected)[~whole].max() < 0.2


def test_a_weighted_position_equals_repeated_positions(rewritten: Session, turns: list[Signal]) -> None:
    many, spoken = 100, list(range(320, 400))

    def judge_after(silent: list[int], count: int) -> float:
        places = np.array([*silent, *spoken])
        counts = np.array([count, *[1] * (len(places) - 1)], np.float32)
        return judge(rewritten, turns[1], places, counts)

    there = judge_after([140] * many, count=1)
    assert judge_after([140], count=many) == pytest.approx(there, abs=0.02)
    assert judge_after([140], count=1) != pytest.approx(there, abs=0.04)


@pytest.mark.parametrize("another", ["silero-vad/silero_vad.onnx", "joe/en_US-joe-medium.onnx"])
def test_a_model_of_something_else_is_refused(models_dir: Path, another: str) -> None:
    with pytest.raises(ModelFileError, match="not the graph of Smart Turn"):
        TurnDetector(models_dir / another)


def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "turn.onnx"
    path.write_bytes(b"not a model" * 100)
    with pytest.raises(ModelFileError, match="Remove it and get it again"):
        TurnDetector(path)
