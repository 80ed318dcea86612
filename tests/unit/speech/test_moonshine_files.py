"""The graphs that are made once and kept: where, for how long, and what if they cannot be."""

import shutil
from collections.abc import Callable
from pathlib import Path

import onnxruntime  # type: ignore[import-untyped]
import pytest

from antiphon.speech.base import SpeechError
from antiphon.speech.engines.moonshine.files import ModelFiles, find_files, open_graphs
from antiphon.speech.engines.moonshine.model import Moonshine


@pytest.fixture(scope="module")
def made(models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with the graphs in it. Its tests leave it as it is."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "moonshine-base-en").symlink_to(models_dir / "moonshine-base-en")
    Moonshine(find_files(folder))
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> ModelFiles:
    """Model files with their own copies of the graphs, which tests may damage."""
    shutil.copytree(made, tmp_path / "models", symlinks=True)
    return find_files(tmp_path / "models")


def kept(files: ModelFiles) -> list[Path]:
    return list(files.cache_dir.iterdir())


def stamps(files: ModelFiles) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in files.cache_dir.rglob("*")}


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_the_derived_files_are_made_once(files: ModelFiles) -> None:
    before = stamps(files)
    Moonshine(files)
    assert stamps(files) == before


def test_the_derived_files_are_readable_by_others(files: ModelFiles) -> None:
    modes = {path.stat().st_mode & 0o777 for path in kept(files)[0].iterdir()}
    assert modes == {0o644}


@pytest.mark.parametrize("spoil", [cut_in_half, Path.unlink])
def test_damaged_derived_files_are_rebuilt(files: ModelFiles, spoil: Callable[[Path], None]) -> None:
    (folder,) = kept(files)
    weights = folder / "decoder.weights"
    size = weights.stat().st_size
    spoil(weights)
    Moonshine(files)
    assert weights.stat().st_size == size


def test_another_onnxruntime_version_replaces_the_derived_files(
    files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = kept(files)
    monkeypatch.setattr(onnxruntime, "__version__", "99.0")
    Moonshine(files)
    (after,) = kept(files)
    assert after != before


def test_without_a_writable_cache_they_are_made_for_one_run(files: ModelFiles) -> None:
    shutil.rmtree(files.cache_dir)
    files.cache_dir.write_text("in the way")
    Moonshine(files)
    assert files.cache_dir.is_file()


@pytest.mark.parametrize("name", ["encoder_model.ort", "decoder_model_merged.ort"])
@pytest.mark.parametrize("content", [b"", b"no model", bytes(10_000)])
def test_files_that_contain_no_model_are_reported(made: Path, tmp_path: Path, name: str, content: bytes) -> None:
    folder = tmp_path / "moonshine-base-en"
    folder.mkdir()
    for each in (made / "moonshine-base-en").iterdir():
        (folder / each.name).symlink_to(each.resolve())
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(SpeechError, match=r"not the Moonshine base model.*antiphon models pull"):
        Moonshine(find_files(tmp_path))
    assert not kept(find_files(tmp_path))


def test_the_model_of_something_else_is_reported(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moonshine-base-en"
    folder.mkdir()
    source = made.resolve() / "moonshine-base-en"
    for name, of in (
        ("encoder_model.ort", "decoder_model_merged.ort"),
        ("decoder_model_merged.ort", "encoder_model.ort"),
    ):
        (folder / name).symlink_to((source / of).resolve())
    (folder / "tokenizer.bin").symlink_to((source / "tokenizer.bin").resolve())
    with pytest.raises(SpeechError, match="not the Moonshine base model"):
        Moonshine(find_files(tmp_path))


def test_unreadable_tokens_are_reported(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "moonshine-base-en"
    shutil.copytree(made / "moonshine-base-en", folder)
    (folder / "tokenizer.bin").write_bytes(b"\x7f")
    with pytest.raises(SpeechError, match=r"tokenizer\.bin cannot be read.*antiphon models pull"):
        Moonshine(find_files(tmp_path))


@pytest.mark.parametrize("name", ["encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin"])
def test_a_missing_file_is_reported(made: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "moonshine-base-en"
    shutil.copytree(made / "moonshine-base-en", folder)
    (folder / name).unlink()
    with pytest.raises(SpeechError, match=f"no model file at .*{name}"):
        find_files(tmp_path)


def test_a_file_that_vanishes_is_reported(files: ModelFiles, tmp_path: Path) -> None:
    gone = ModelFiles(tmp_path / "gone.ort", files.decoder, files.tokenizer, files.cache_dir)
    with pytest.raises(SpeechError, match=r"gone\.ort"):
        open_graphs(gone, lambda folder: folder)
