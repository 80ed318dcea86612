"""Capabilities that a project's own code offers, and what tools need to run."""

import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.build import build
from antiphon.authoring.problems import Severity
from antiphon.compose.capabilities import CapabilityError, check_capabilities, open_capabilities
from antiphon.compose.requirements import find_missing
from antiphon.config import Settings, Tools
from antiphon.tools.artifact import Entry
from tests.fakes.toolbox import HANDLER, write_tool

MODULE = """\
from contextlib import asynccontextmanager

events = []
number = 5


def offer(session, tool):
    return f"crm of {session.user} for {tool.id}"


class Maker:
    def __call__(self, session, tool):
        return "made"


maker = Maker()


@asynccontextmanager
async def opened():
    events.append("opened")
    yield offer
    events.append("closed")


@asynccontextmanager
async def gives_nothing():
    yield None


@asynccontextmanager
async def fails():
    raise ConnectionError("no route to the database")
    yield


def not_a_manager():
    return offer


async def a_coroutine():
    return offer


def one(session):
    return None


def named(*, session, tool):
    return None
"""


class View:
    user = "ann"
    id = "greet"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Settings]:
    package = tmp_path / "mycompany"
    package.mkdir()
    (package / "crm.py").write_text(MODULE)
    (package / "broken.py").write_text("import a_package_that_is_missing\n")
    (package / "raises.py").write_text("raise RuntimeError('boom')\n")
    yield Settings(project_dir=tmp_path, data_dir=tmp_path / "data")
    sys.path[:] = [each for each in sys.path if each != str(tmp_path)]
    for name in [name for name in sys.modules if name.partition(".")[0] == "mycompany"]:
        del sys.modules[name]


def with_crm(project: Settings, reference: str, name: str = "crm") -> Settings:
    return replace(project, tools=Tools(capabilities={name: reference}))


async def offered(project: Settings, reference: str) -> Any:
    async with AsyncExitStack() as stack:
        offers = await open_capabilities(with_crm(project, reference), stack)
        return offers["crm"](View(), View())  # type: ignore[arg-type]


async def test_a_function_of_the_session_and_the_tool_is_an_offer(project: Settings) -> None:
    assert await offered(project, "mycompany.crm:offer") == "crm of ann for greet"


async def test_an_object_that_can_be_called_is_an_offer(project: Settings) -> None:
    assert await offered(project, "mycompany.crm:maker") == "made"


async def test_a_context_manager_is_open_while_the_server_runs(project: Settings) -> None:
    async with AsyncExitStack() as stack:
        offers = await open_capabilities(with_crm(project, "mycompany.crm:opened"), stack)
        assert sys.modules["mycompany.crm"].events == ["opened"]
        assert offers["crm"](View(), View()) == "crm of ann for greet"  # type: ignore[arg-type]
    assert sys.modules["mycompany.crm"].events == ["opened", "closed"]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("mycompany.crn:offer", "but there is no module mycompany.crn. Put it into "),
        ("nobody:offer", "but there is no module nobody."),
        ("mycompany.crm:ofer", "has no ofer. Did you mean offer?"),
        ("mycompany.crm:number", "which is a int. It must be a function of the session and the tool."),
        ("mycompany.crm:one", "which takes other parameters than (session, tool)."),
        ("mycompany.crm:named", "which takes other parameters than (session, tool)."),
        ("mycompany.broken:offer", "mycompany.broken imports a_package_that_is_missing, which is not installed."),
        ("mycompany.raises:offer", "mycompany.raises cannot be imported: RuntimeError: boom"),
    ],
)
def test_a_capability_that_cannot_be_imported_is_explained(project: Settings, reference: str, told: str) -> None:
    (problem,) = check_capabilities(with_crm(project, reference))
    assert str(problem).startswith(f"tools.capabilities: crm is '{reference}', ")
    assert told in str(problem)


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("mycompany.crm:not_a_manager", "so it must return an async context manager"),
        ("mycompany.crm:a_coroutine", "so it must return an async context manager"),
        ("mycompany.crm:gives_nothing", "which gives a NoneType. It must give a function"),
        ("mycompany.crm:fails", "which cannot be opened: ConnectionError: no route to the database"),
    ],
)
async def test_a_capability_that_cannot_be_opened_is_explained(project: Settings, reference: str, told: str) -> None:
    with pytest.raises(CapabilityError) as refused:
        await offered(project, reference)
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["kb", "secrets", "call_tool"])
def test_the_name_of_a_built_in_capability_is_refused(project: Settings, name: str) -> None:
    (problem,) = check_capabilities(with_crm(project, "mycompany.crm:offer", name))
    assert f"but Antiphon offers {name} itself. Choose another name." in str(problem)


def test_a_file_of_the_project_does_not_replace_a_module_of_python(project: Settings) -> None:
    (project.project_dir / "colorsys.py").write_text("def offer(session, tool): ...\n")
    (problem,) = check_capabilities(with_crm(project, "colorsys:offer"))
    assert "has no offer" in str(problem)


def entries_of(project: Settings, **fields: Any) -> list[Entry]:
    write_tool(project.project_dir / "tools", "greet", **fields)
    built = build([project.project_dir / "tools"])
    assert built.ok
    return built.artifact.tools


def test_a_capability_that_nobody_offers_is_an_error_with_the_nearest_name(project: Settings) -> None:
    (problem,) = find_missing(project, entries_of(project, uses=["storag"]))
    assert problem.severity is Severity.ERROR
    assert str(problem) == 'greet/schema.json: uses: nothing offers "storag". Did you mean "storage"?'


def test_an_own_capability_that_is_not_in_the_settings_is_an_error_that_names_the_setting(project: Settings) -> None:
    (problem,) = find_missing(project, entries_of(project, uses=["crm"]))
    assert str(problem).endswith(
        'nothing offers "crm". If it is your own, name it in antiphon.toml: '
        '[tools] capabilities = { crm = "module:attribute" }'
    )


def test_an_own_capability_that_is_in_the_settings_is_known(project: Settings) -> None:
    assert find_missing(with_crm(project, "mycompany.crm:offer"), entries_of(project, uses=["crm", "storage"])) == []


def test_a_secret_that_is_not_set_is_a_warning(project: Settings) -> None:
    entries = entries_of(project, uses=["secrets"], secrets=["ACME_KEY", "OTHER_KEY"])
    (problem,) = find_missing(project, entries, {"OTHER_KEY": "x", "ACME_KEY": ""})
    assert problem.severity is Severity.WARNING
    assert str(problem) == "greet/schema.json: secrets: ACME_KEY is not set in the environment; calls fail until it is"


def test_a_package_that_is_not_installed_is_an_error(project: Settings) -> None:
    entries = entries_of(project, files={"handler.py": f"import not_installed_here\n{HANDLER}"})
    (problem,) = find_missing(project, entries)
    assert "imports not_installed_here, which is not installed" in str(problem)
