"""The wheel has everything that the server reads from its own folders. `make soak` also installs it and uses it."""

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from antiphon.compose import TOOLKIT
from antiphon.storage.migrations import FOLDER as MIGRATIONS
from tests.deploy.wheel import build_wheel
from tests.fakes.tree import ROOT

SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


def test_the_wheel_has_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    here = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "antiphon").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != "tool_registry.json"
    }
    inside = {name for name in wheel.namelist() if name.startswith("antiphon/")}
    assert inside == here


@pytest.mark.parametrize(
    "name",
    [
        "antiphon/py.typed",
        "antiphon/prompts/core.md",
        "antiphon/server/static/index.html",
        "antiphon/server/static/app.js",
        "antiphon/server/static/antiphon-client.js",
        "antiphon/storage/migrations/env.py",
        "antiphon/models/builtin/small_talk.yaml",
    ],
)
def test_the_wheel_has_what_is_not_imported(wheel: zipfile.ZipFile, name: str) -> None:
    assert name in wheel.namelist()


def test_the_wheel_has_the_migrations_and_the_tools_with_their_tests(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    for file in (MIGRATIONS / "versions").glob("*.py"):
        assert f"antiphon/storage/migrations/versions/{file.name}" in names
    tools = [directory.name for directory in TOOLKIT.iterdir() if (directory / "schema.json").exists()]
    assert tools
    for tool in tools:
        assert f"antiphon/toolkit/{tool}/schema.json" in names
        assert any(name.startswith(f"antiphon/toolkit/{tool}/tests/test_") for name in names)


def test_the_wheel_names_its_command_and_its_extras(wheel: zipfile.ZipFile) -> None:
    [entry_points] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "antiphon = antiphon.cli:main" in wheel.read(entry_points).decode()
    [metadata] = [name for name in wheel.namelist() if name.endswith("METADATA")]
    described = Parser().parsestr(wheel.read(metadata).decode())
    assert {"local", "tls", "postgres"} <= set(described.get_all("Provides-Extra") or ())
    assert described["License-Expression"] == "Apache-2.0"


def test_nothing_but_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    assert {Path(name).parts[0].partition("-")[0] for name in wheel.namelist()} == {"antiphon"}
