"""The written reference is what the code does."""

from pathlib import Path

from antiphon.server.reference import SCHEMA, find_stale, write

ROOT = Path(__file__).parents[3]


def test_the_reference_is_current() -> None:
    assert find_stale(ROOT) == [], "run `make reference`"


def test_a_freshly_written_reference_is_current(tmp_path: Path) -> None:
    write(tmp_path / "new" / "folder")
    assert find_stale(tmp_path / "new" / "folder") == []


def test_a_changed_file_is_stale(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / SCHEMA).write_text("{}")
    assert find_stale(tmp_path) == [SCHEMA]
