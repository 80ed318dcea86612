import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.authoring.build import build
from antiphon.authoring.scaffold import ScaffoldError, create


def test_a_new_tool_builds_without_a_problem(tmp_path: Path) -> None:
    create(tmp_path, "roll_dice")
    built = build([tmp_path])
    assert built.problems == []
    assert [tool.tool_id for tool in built.artifact.tools] == ["roll_dice"]


def test_new_tools_do_not_conflict_with_each_other(tmp_path: Path) -> None:
    for name in ("a", "b" * 64, "roll_dice", "roll_dice_twice"):
        create(tmp_path, name)
    assert build([tmp_path]).problems == []


@pytest.mark.real_time
def test_the_test_of_a_new_tool_passes_anywhere(tmp_path: Path) -> None:
    directory = create(tmp_path, "roll_dice")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", str(directory)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_dashes_become_underscores(tmp_path: Path) -> None:
    assert create(tmp_path, "roll-dice") == tmp_path / "roll_dice"


def test_the_tools_folder_is_created_if_needed(tmp_path: Path) -> None:
    assert create(tmp_path / "tools", "roll_dice").is_dir()


@pytest.mark.parametrize("name", ["", "Roll", "1st", "_x", "-x", "a b", "../x", "a.b", "x" * 65, "würfel", "x\n"])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ScaffoldError, match="cannot be the name of a tool"):
        create(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", ["roll_dice", "roll-dice"])
def test_an_existing_directory_is_left_alone(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).mkdir()
    with pytest.raises(ScaffoldError, match=f"{taken} exists already"):
        create(tmp_path, "roll_dice")
    assert list((tmp_path / taken).iterdir()) == []


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tools").write_text("x")
    with pytest.raises(ScaffoldError, match="cannot be written"):
        create(tmp_path / "tools", "roll_dice")
