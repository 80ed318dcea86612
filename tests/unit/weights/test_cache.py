"""Where derived files are made, how long they stay, and what if they cannot."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from antiphon.weights.cache import drafting, keep, key_of


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "toy"


@contextmanager
def drafted(cache: Path, content: str = "new") -> Iterator[Path]:
    with drafting(cache) as drafts:
        (drafts / "graph").write_text(content)
        yield drafts


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def test_kept_drafts_are_in_their_folder(cache: Path) -> None:
    with drafted(cache) as drafts:
        assert keep(drafts, cache / "key") == cache / "key"
    assert (cache / "key" / "graph").read_text() == "new"
    assert names(cache) == ["key"]


def test_drafts_that_are_not_kept_are_gone(cache: Path) -> None:
    with drafted(cache):
        pass
    assert names(cache) == []


def test_drafts_are_gone_if_making_them_fails(cache: Path) -> None:
    with pytest.raises(ValueError, match="no model"), drafted(cache):
        raise ValueError("no model")
    assert names(cache) == []


def test_others_may_read_what_is_kept(cache: Path) -> None:
    with drafted(cache) as drafts:
        (drafts / "graph").chmod(0o600)
        kept = keep(drafts, cache / "key")
    assert [path.stat().st_mode & 0o777 for path in (kept, kept / "graph")] == [0o755, 0o644]


def test_other_versions_give_way_and_the_drafts_of_others_do_not(cache: Path) -> None:
    (cache / "old").mkdir(parents=True)
    with drafting(cache) as theirs, drafted(cache) as drafts:
        keep(drafts, cache / "key")
        assert sorted(names(cache)) == sorted(["key", theirs.name])


def test_what_another_process_has_kept_before_is_let_be(cache: Path) -> None:
    with drafted(cache, "mine") as mine, drafted(cache, "theirs") as theirs:
        keep(theirs, cache / "key")
        kept = keep(mine, cache / "key")
        assert (kept / "graph").read_text() == "mine"
    assert (cache / "key" / "graph").read_text() == "theirs"
    assert names(cache) == ["key"]


def test_where_the_cache_cannot_be_written_drafts_last_for_this_time(cache: Path) -> None:
    cache.parent.write_text("in the way")
    with drafted(cache) as drafts:
        kept = keep(drafts, cache / "key")
        assert (kept / "graph").read_text() == "new"
    assert not kept.exists()


def test_a_key_stays_while_the_files_and_the_recipe_do(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    key = key_of([one, two], "1.0")
    assert key_of([one, two], "1.0") == key
    assert len({key, key_of([one, two], "1.1"), key_of([two, one], "1.0"), key_of([one], "1.0")}) == 4
    two.write_text("3")
    assert key_of([one, two], "1.0") != key


def test_a_file_that_is_missing_has_no_key(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        key_of([tmp_path / "gone"], "1.0")
