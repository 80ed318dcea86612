"""Where derived files are made, how long they stay, and what if they cannot."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from antiphon.weights.cache import STALE_AFTER_S, cache_key, move_into_cache, open_cached, temporary_folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "toy"


@contextmanager
def drafted(cache: Path, content: str = "new") -> Iterator[Path]:
    with temporary_folder(cache) as drafts:
        (drafts / "graph").write_text(content)
        yield drafts


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def test_committed_drafts_are_in_their_folder(cache: Path) -> None:
    with drafted(cache) as drafts:
        assert move_into_cache(drafts, cache / "key") == cache / "key"
    assert (cache / "key" / "graph").read_text() == "new"
    assert names(cache) == ["key"]


def test_uncommitted_drafts_are_removed(cache: Path) -> None:
    with drafted(cache):
        pass
    assert names(cache) == []


def test_drafts_are_removed_if_making_them_fails(cache: Path) -> None:
    with pytest.raises(ValueError, match="no model"), drafted(cache):
        raise ValueError("no model")
    assert names(cache) == []


def test_cached_files_are_readable_by_others(cache: Path) -> None:
    with drafted(cache) as drafts:
        (drafts / "graph").chmod(0o600)
        kept = move_into_cache(drafts, cache / "key")
    assert [path.stat().st_mode & 0o777 for path in (kept, kept / "graph")] == [0o755, 0o644]


def test_other_versions_are_removed_but_drafts_of_other_processes_are_not(cache: Path) -> None:
    (cache / "old").mkdir(parents=True)
    with temporary_folder(cache) as theirs, drafted(cache) as drafts:
        move_into_cache(drafts, cache / "key")
        assert sorted(names(cache)) == sorted(["key", theirs.name])


def test_files_cached_by_another_process_are_not_replaced(cache: Path) -> None:
    with drafted(cache, "mine") as mine, drafted(cache, "theirs") as theirs:
        move_into_cache(theirs, cache / "key")
        kept = move_into_cache(mine, cache / "key")
        assert (kept / "graph").read_text() == "mine"
    assert (cache / "key" / "graph").read_text() == "theirs"
    assert names(cache) == ["key"]


def test_without_a_writable_cache_drafts_last_for_one_run(cache: Path) -> None:
    cache.parent.write_text("in the way")
    with drafted(cache) as drafts:
        kept = move_into_cache(drafts, cache / "key")
        assert (kept / "graph").read_text() == "new"
    assert not kept.exists()


def test_a_key_is_stable_while_the_files_and_the_recipe_are(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    key = cache_key([one, two], "1.0")
    assert cache_key([one, two], "1.0") == key
    assert len({key, cache_key([one, two], "1.1"), cache_key([two, one], "1.0"), cache_key([one], "1.0")}) == 4
    two.write_text("3")
    assert cache_key([one, two], "1.0") != key


def test_a_missing_file_has_no_key(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        cache_key([tmp_path / "gone"], "1.0")


class Workshop:
    """Makes a graph, and opens it unless it is spoilt."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.made = 0

    def open(self, key: str = "key") -> str:
        return open_cached(self.cache, key, self._make, self._read)

    def _make(self, folder: Path) -> None:
        self.made += 1
        (folder / "graph").write_text(f"graph {self.made}")

    def _read(self, folder: Path) -> str:
        text = (folder / "graph").read_text()
        if not text.startswith("graph"):
            raise ValueError("no graph")
        return text


@pytest.fixture
def workshop(cache: Path) -> Workshop:
    return Workshop(cache)


def test_files_that_open_are_made_once(workshop: Workshop) -> None:
    with capture_logs() as logs:
        assert [workshop.open(), workshop.open()] == ["graph 1", "graph 1"]
    assert logs == []


@pytest.mark.parametrize(
    "spoil",
    [lambda key: (key / "graph").write_text("noise"), lambda key: (key / "graph").unlink(), shutil.rmtree],
    ids=["damaged", "half", "gone"],
)
def test_files_that_cannot_be_opened_are_rebuilt(workshop: Workshop, spoil: Callable[[Path], object]) -> None:
    workshop.open()
    spoil(workshop.cache / "key")
    assert [workshop.open(), workshop.open()] == ["graph 2", "graph 2"]
    assert names(workshop.cache) == ["key"]


def test_damage_is_logged_in_one_line(workshop: Workshop) -> None:
    workshop.open()
    (workshop.cache / "key" / "graph").write_text("noise")
    with capture_logs() as logs:
        workshop.open()
    assert [(log["event"], log["reason"]) for log in logs] == [("cache_rebuilt", "no graph")]


def test_files_that_fail_again_after_a_rebuild_are_an_error_and_not_cached(workshop: Workshop) -> None:
    def fail(folder: Path) -> str:
        raise ValueError("no model")

    for _ in range(2):
        with pytest.raises(ValueError, match="no model"), capture_logs():
            open_cached(workshop.cache, "key", lambda folder: None, fail)


def test_an_unwritable_cache_is_reported(workshop: Workshop) -> None:
    workshop.cache.parent.write_text("in the way")
    with capture_logs() as logs:
        assert workshop.open() == "graph 1"
    assert [log["event"] for log in logs] == ["cache_not_writable"]


def test_drafts_of_a_killed_process_are_removed_after_a_day(workshop: Workshop) -> None:
    workshop.open()
    for name, age_s in (("new-killed", STALE_AFTER_S + 60), ("new-at-work", 60)):
        (workshop.cache / name).mkdir()
        (workshop.cache / name / "graph").write_text("half")
        at_s = time.time() - age_s
        os.utime(workshop.cache / name, (at_s, at_s))
    workshop.open()
    assert sorted(names(workshop.cache)) == ["key", "new-at-work"]
