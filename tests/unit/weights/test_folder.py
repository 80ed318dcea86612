"""The folder of the model files."""

from pathlib import Path

import pytest

from antiphon.weights.folder import State, cache_dir, exclusive_access, locate, path_of, remove, state_of, verify
from antiphon.weights.manifest import Model, WeightsError, Wheel, find_model
from tests.unit.weights.local_index import CONTENT, toy_model

TOY = toy_model(Wheel("toy-voice", "1.0", 1))
FILE = TOY.files[0]


def place(models_dir: Path, content: bytes = CONTENT, model: Model = TOY) -> Path:
    path = path_of(models_dir, model, model.files[0])
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


# locate


def test_an_existing_file_is_located(models_dir: Path) -> None:
    assert locate(models_dir, "silero-vad", "silero_vad.onnx").stat().st_size == 2_327_524


def test_a_missing_file_is_reported_with_the_command_that_gets_it(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"silero_vad\.onnx is missing\. Run `antiphon models pull silero-vad`\."):
        locate(tmp_path, "silero-vad", "silero_vad.onnx")


def test_a_file_of_the_wrong_size_is_not_located(tmp_path: Path) -> None:
    place(tmp_path, b"half", find_model("silero-vad"))
    with pytest.raises(WeightsError, match=r"is damaged\. Run `antiphon models pull silero-vad`"):
        locate(tmp_path, "silero-vad", "silero_vad.onnx")


def test_an_unknown_file_of_a_model_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"has no file 'voice\.wav'. It has en_US-joe-medium\.onnx, "):
        locate(tmp_path, "joe", "voice.wav")


def test_an_unknown_model_is_not_located(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="nearest is joe"):
        locate(tmp_path, "jo", "voice.wav")


# state and digest


def test_a_file_in_place_of_the_folder_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    assert state_of(tmp_path / "models", TOY, FILE) is State.MISSING


def test_a_change_that_keeps_the_size_is_found_only_by_the_digest(tmp_path: Path) -> None:
    place(tmp_path, b"!" + CONTENT[1:])
    assert state_of(tmp_path, TOY, FILE) is State.PRESENT
    assert verify(tmp_path, TOY, FILE) is State.DAMAGED


def test_a_verification_reports_its_progress(tmp_path: Path) -> None:
    place(tmp_path)
    told: list[int] = []
    assert verify(tmp_path, TOY, FILE, told.append) is State.PRESENT
    assert told == [len(CONTENT)]


def test_a_missing_file_cannot_be_verified(tmp_path: Path) -> None:
    assert verify(tmp_path, TOY, FILE) is State.MISSING


# remove


def test_removing_a_model_removes_its_derived_files(tmp_path: Path) -> None:
    place(tmp_path)
    cache = cache_dir(tmp_path, "toy")
    cache.mkdir(parents=True)
    (cache / "optimised.onnx").write_bytes(b"graph")
    assert remove(tmp_path, TOY)
    assert not cache.exists()
    assert not (tmp_path / "toy").exists()


def test_other_files_beside_a_model_are_kept(tmp_path: Path) -> None:
    path = place(tmp_path)
    note = path.with_name("notes.txt")
    note.write_text("mine")
    assert remove(tmp_path, TOY)
    assert [each.name for each in path.parent.iterdir()] == ["notes.txt"]


def test_removing_a_missing_model_does_nothing(tmp_path: Path) -> None:
    assert not remove(tmp_path / "nowhere", TOY)
    assert not (tmp_path / "nowhere").exists()


def test_a_model_that_cannot_be_removed_is_reported(tmp_path: Path) -> None:
    path_of(tmp_path, TOY, FILE).mkdir(parents=True)
    with pytest.raises(WeightsError, match="toy cannot be removed from"):
        remove(tmp_path, TOY)


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    path = place(tmp_path)
    path.with_name(".voice.bin.partial").write_bytes(CONTENT[:10])
    (tmp_path / ".pull-abc").mkdir()
    (tmp_path / ".pull-abc" / "toy.whl").write_bytes(b"half")
    with exclusive_access(tmp_path):
        assert sorted(each.name for each in tmp_path.rglob("*")) == [".lock", "toy", "voice.bin"]
