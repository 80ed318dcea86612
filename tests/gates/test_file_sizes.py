"""No source file may be longer than a reader can keep in mind."""

import os
from pathlib import Path
from typing import Final

MAX_LINES: Final = 600
SOURCES: Final = (".py", ".ts", ".tsx", ".css")
NOT_OURS: Final = frozenset({"node_modules", "__pycache__", "build", "dist", "static"})
"""Folders of files that nobody writes: packages, and what is built, such as the page in server/static."""
ROOT: Final = Path(__file__).parents[2]


def source_files(root: Path) -> list[Path]:
    """The source files of the project. Folders of tools and caches, which start with a dot, are left out."""
    found: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in NOT_OURS]
        found += [Path(folder, name) for name in names if name.endswith(SOURCES)]
    return found


def too_long(root: Path) -> dict[str, int]:
    lines = {path: path.read_bytes().count(b"\n") for path in source_files(root)}
    return {str(path.relative_to(root)): count for path, count in lines.items() if count > MAX_LINES}


def test_no_source_file_is_longer_than_600_lines() -> None:
    assert too_long(ROOT) == {}


def test_every_kind_of_source_file_is_checked(tmp_path: Path) -> None:
    for name in ("a.py", "b.ts", "c.tsx", "d.css", "e.md"):
        (tmp_path / name).write_text("\n" * (MAX_LINES + 1))
    assert set(too_long(tmp_path)) == {"a.py", "b.ts", "c.tsx", "d.css"}


def test_installed_packages_are_not_checked(tmp_path: Path) -> None:
    for folder in (".venv", "node_modules"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("\n" * (MAX_LINES + 1))
    assert too_long(tmp_path) == {}


def test_a_file_of_600_lines_passes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n" * MAX_LINES)
    assert too_long(tmp_path) == {}
