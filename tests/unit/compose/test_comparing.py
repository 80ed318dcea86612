"""The loaded tools are compared with what their folders would give now."""

import shutil
from pathlib import Path

import pytest

from antiphon.authoring import build
from antiphon.compose.comparing import ToolComparer, compare_tools
from antiphon.tools.registry import Registry
from tests.fakes.toolbox import write_tool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("greet", "part"):
        write_tool(tmp_path / "tools", name)
    return tmp_path / "tools"


@pytest.fixture
def registry(folder: Path, tmp_path: Path) -> Registry:
    build.write(build.build([folder]), tmp_path / "tool_registry.json")
    return Registry.load(tmp_path / "tool_registry.json", environment="production")


def test_nothing_has_changed(registry: Registry, folder: Path) -> None:
    found = compare_tools(registry, build.build([folder]))
    assert (found.running, found.on_disk) == (registry.built_version, registry.built_version)
    assert (found.tools, found.problems) == ((), ())


def test_added_changed_and_removed_tools_are_found(registry: Registry, folder: Path) -> None:
    write_tool(folder, "wave")
    write_tool(folder, "greet", version="2.0.0")
    shutil.rmtree(folder / "part")
    found = compare_tools(registry, build.build([folder]))
    assert found.on_disk != found.running
    assert {each.tool: each.kind for each in found.tools} == {"greet": "changed", "part": "removed", "wave": "added"}
    [change] = [change for each in found.tools if each.tool == "greet" for change in each.changes]
    assert (change.field, change.breaking) == ("version", False)


def test_mistakes_are_reported(registry: Registry, folder: Path) -> None:
    (folder / "greet" / "schema.json").write_text("{")
    found = compare_tools(registry, build.build([folder]))
    assert any("greet" in problem for problem in found.problems)


@pytest.mark.real_time
async def test_a_comparison_is_made_once_for_several_readers(registry: Registry, folder: Path) -> None:
    built: list[int] = []

    def make() -> build.Built:
        built.append(1)
        return build.build([folder])

    comparer = ToolComparer(registry, make)
    assert await comparer.compare() is await comparer.compare()
    assert len(built) == 1
