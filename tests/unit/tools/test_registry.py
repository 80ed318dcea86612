import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.build import build, write
from antiphon.authoring.testing import make_context
from antiphon.tools.errors import RegistryError
from antiphon.tools.registry import Registry, Snapshot
from antiphon.tools.spec import Category, Mode
from tests.fakes.gates import make_tool
from tests.fakes.toolbox import HANDLER, PREVIEW, write_tool


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with two tools: `greet` everywhere, `wave` in text only."""
    write_tool(tmp_path / "tools", "greet")
    write_tool(
        tmp_path / "tools",
        "wave",
        category="action",
        sideEffects="writes",
        requiresConfirmation=True,
        allowedModes=["text"],
        availability='environment == "development"',
        files={"handler.py": HANDLER + PREVIEW},
    )
    return tmp_path


def compiled(home: Path) -> Path:
    path = home / "tool_registry.json"
    write(build([home / "tools"]), path)
    return path


def loaded(home: Path, environment: str = "development") -> Registry:
    return Registry.load(compiled(home), environment=environment)


async def test_a_loaded_tool_runs(home: Path) -> None:
    tool = loaded(home).tools["greet"]
    args, filled = tool.arguments.complete({"name": "Ada"})
    result = await tool.execute(args, make_context("greet"))
    assert result.spoken == "Hello, Ada."
    assert filled == ["loud"]


def test_a_loaded_tool_has_its_contract_and_its_functions(home: Path) -> None:
    tools = loaded(home).tools
    wave = tools["wave"]
    assert wave.spec.requires_confirmation
    assert wave.origin == str(home / "tools" / "wave")
    assert wave.preview is not None
    assert wave.preview({"name": "Ada"}) == "Greet Ada?"
    assert wave.availability is not None
    assert wave.availability.execute({"environment": "development"}) is True
    assert (tools["greet"].preview, tools["greet"].availability, tools["greet"].needs_confirmation) == (
        None,
        None,
        None,
    )


def test_version_and_commit_are_those_of_the_build(home: Path) -> None:
    registry = loaded(home)
    built = build([home / "tools"]).artifact
    assert registry.version == built.version
    assert registry.snapshot().version == built.version


# What cannot be loaded


def test_a_missing_artifact_is_reported_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"No such file or directory. Run `antiphon tools build`"):
        Registry.load(tmp_path / "tool_registry.json", environment="production")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": "1"}'])
def test_a_damaged_artifact_is_reported_with_a_remedy(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tool_registry.json"
    path.write_text(content)
    with pytest.raises(RegistryError, match=r"is damaged .* Run `antiphon tools build`"):
        Registry.load(path, environment="production")


def test_an_artifact_of_another_format_is_reported_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "tool_registry.json"
    path.write_text('{"format": 2, "everything": "else"}')
    with pytest.raises(RegistryError, match=r"has format 2, and this version of Antiphon reads 1. Run"):
        Registry.load(path, environment="production")


def change(path: Path, **fields: Any) -> None:
    artifact = json.loads(path.read_bytes())
    artifact["tools"][0].update(fields)
    path.write_text(json.dumps(artifact))


def test_a_damaged_entry_names_its_tool(home: Path) -> None:
    path = compiled(home)
    change(path, spec={"toolId": "greet"})
    with pytest.raises(RegistryError, match=r"The tool greet is damaged: .* Run `antiphon tools build`"):
        Registry.load(path, environment="production")


def test_all_tools_that_changed_since_the_build_are_named(home: Path) -> None:
    path = compiled(home)
    (home / "tools" / "greet" / "handler.py").write_text(HANDLER + "\n")
    (home / "tools" / "wave" / "doc.md").unlink()
    with pytest.raises(
        RegistryError, match=r"out of date: greet \(.* has changed\), wave \(.*\). Run `antiphon tools build`"
    ):
        Registry.load(path, environment="production")


def test_a_missing_tool_is_named(home: Path) -> None:
    path = compiled(home)
    (home / "tools" / "greet").rename(home / "tools" / "hello")
    with pytest.raises(RegistryError, match=r"out of date: greet \(.*cannot be read: No such file or directory\)"):
        Registry.load(path, environment="production")


def test_a_new_test_of_a_tool_does_not_make_the_artifact_stale(home: Path) -> None:
    path = compiled(home)
    write_tool(home / "tools", "greet", files={"tests/test_greet.py": "x"})
    assert set(Registry.load(path, environment="production").tools) == {"greet", "wave"}


def test_a_handler_that_cannot_be_imported_stops_the_load(home: Path) -> None:
    write_tool(home / "tools", "broken", files={"handler.py": f"import nothing_like_this\n{HANDLER}"})
    with pytest.raises(RegistryError, match=r"The tool broken imports .*, which is not installed. Run `pip install"):
        loaded(home)


def test_a_handler_that_deletes_execute_stops_the_load(home: Path) -> None:
    write_tool(home / "tools", "broken", files={"handler.py": f"{HANDLER}\n\ndel execute\n"})
    with pytest.raises(RegistryError, match="The tool broken has no `execute`"):
        loaded(home)


# Lock and reload


def test_a_reload_picks_up_a_new_build(home: Path) -> None:
    registry = loaded(home)
    before = registry.snapshot()
    write_tool(home / "tools", "nod")
    compiled(home)
    registry.reload()
    assert set(registry.tools) == {"greet", "nod", "wave"}
    assert registry.version != before.version


async def test_a_snapshot_outlives_a_reload(home: Path) -> None:
    registry = loaded(home)
    before = registry.snapshot()
    write_tool(home / "tools", "greet", files={"handler.py": HANDLER.replace("Hello", "Hallo")})
    compiled(home)
    registry.reload()
    old = await before.tools["greet"].execute({"name": "Ada"}, make_context())
    new = await registry.snapshot().tools["greet"].execute({"name": "Ada"}, make_context())
    assert (old.spoken, new.spoken) == ("Hello, Ada.", "Hallo, Ada.")


def test_a_failed_reload_keeps_the_previous_tools(home: Path) -> None:
    registry = loaded(home)
    before = registry.snapshot()
    (home / "tool_registry.json").unlink()
    with pytest.raises(RegistryError):
        registry.reload()
    assert registry.snapshot() is before


def test_a_reload_that_fails_the_check_keeps_the_previous_tools(home: Path) -> None:
    registry = loaded(home)
    before = registry.snapshot()

    def refuse(snapshot: Snapshot) -> None:
        raise RegistryError("no")

    with pytest.raises(RegistryError):
        registry.reload(refuse)
    assert registry.snapshot() is before


def test_a_locked_registry_is_not_reloaded(home: Path) -> None:
    registry = loaded(home)
    assert not registry.locked
    registry.lock()
    assert registry.locked
    with pytest.raises(RegistryError, match="locked"):
        registry.reload()


def test_tools_are_reloaded_in_development_only(home: Path) -> None:
    with pytest.raises(RegistryError, match=r'server.environment is "production"'):
        loaded(home, environment="production").reload()


# The snapshot


def test_all_sessions_share_one_snapshot(home: Path) -> None:
    registry = loaded(home)
    first = registry.snapshot()
    registry.lock()
    assert registry.snapshot() is first


def test_a_snapshot_is_frozen(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    with pytest.raises(FrozenInstanceError):
        snapshot.version = "2"  # type: ignore[misc]
    with pytest.raises(TypeError):
        snapshot.tools["other"] = snapshot.tools["greet"]  # type: ignore[index]


def test_summaries_are_one_line_a_tool_and_name_the_modes_of_those_that_have_not_all(home: Path) -> None:
    first, second = loaded(home).snapshot().summaries().splitlines()
    assert first == "**greet** (utility): Greets a person by name. Use it when someone wants to be greeted."
    assert second.startswith("**wave** (action, text only): ")


def test_tools_of_every_mode_come_before_those_of_one(home: Path) -> None:
    write_tool(home / "tools", "accept", allowedModes=["text"])
    assert [tool.id for tool in loaded(home).snapshot().allowed(Mode.TEXT)] == ["greet", "accept", "wave"]


def test_documentation_is_found_by_id(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    documentation = snapshot.documentation("greet")
    assert documentation is not None
    assert documentation.startswith("# greet\n")
    assert snapshot.documentation("unknown") is None
    assert snapshot.tool_ids() == ["greet", "wave"]


def test_metadata_is_the_contract_without_its_schemas(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    metadata = snapshot.metadata("wave")
    assert metadata is not None
    assert metadata["toolId"] == "wave"
    assert metadata["allowedModes"] == ("text",)
    assert metadata["latencyBudgetMs"] == 100
    assert "parameters" not in metadata
    assert snapshot.metadata("unknown") is None


def test_tools_are_found_by_category(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    assert [tool.id for tool in snapshot.by_category(Category.ACTION)] == ["wave"]
    assert snapshot.by_category(Category.RETRIEVAL) == []


def test_a_provider_gets_only_tools_that_the_mode_allows(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    assert [tool["name"] for tool in snapshot.provider_schemas("openai_realtime", Mode.VOICE)] == ["greet"]
    assert [tool["name"] for tool in snapshot.provider_schemas("mcp", Mode.TEXT)] == ["greet", "wave"]


def test_provider_schemas_are_built_once(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    assert snapshot.provider_schemas("gemini", Mode.TEXT) is snapshot.provider_schemas("gemini", Mode.TEXT)


def test_an_unknown_provider_is_reported_with_the_known_ones(home: Path) -> None:
    with pytest.raises(RegistryError, match='no tool schemas for "acme"; there are openai_chat, '):
        loaded(home).snapshot().provider_schemas("acme", Mode.TEXT)


def test_metrics_sum_up_the_calls_to_each_tool(home: Path) -> None:
    snapshot = loaded(home).snapshot()
    snapshot.tools["greet"].stats.count("ok", 4.0, cache_hit=False)
    snapshot.tools["greet"].stats.count("TRANSIENT", 8.0, cache_hit=False)
    assert snapshot.metrics()["greet"] == {"calls": 2, "errors": 1, "cache_hits": 0, "average_ms": 6.0}
    assert snapshot.metrics()["wave"]["calls"] == 0


# Tools that join at run time.


def test_tools_that_join_change_the_version_also_while_it_is_locked(home: Path) -> None:
    registry = loaded(home, "production")
    registry.lock()
    built = registry.version
    assert registry.set_runtime_tools([make_tool("far_echo", digest="1")])
    first = registry.version
    assert first != built
    assert registry.built_version == registry.snapshot().built_version == built
    assert "far_echo" in registry.tools
    assert registry.set_runtime_tools([make_tool("far_echo", digest="2")])
    assert registry.version != first
    assert registry.set_runtime_tools([])
    assert registry.version == built


def test_the_same_tools_are_no_change(home: Path) -> None:
    registry = loaded(home)
    registry.set_runtime_tools([make_tool("far_echo")])
    assert not registry.set_runtime_tools([make_tool("far_echo")])


def test_a_tool_from_files_keeps_its_id(home: Path) -> None:
    registry = loaded(home)
    own = registry.tools["greet"]
    assert not registry.set_runtime_tools([make_tool("greet")])
    assert registry.tools["greet"] is own


def test_a_reload_keeps_the_tools_that_have_joined(home: Path) -> None:
    registry = loaded(home)
    registry.set_runtime_tools([make_tool("far_echo")])
    before = registry.version
    write_tool(home / "tools", "nod")
    compiled(home)
    registry.reload()
    assert {"nod", "far_echo"} <= registry.tools.keys()
    assert registry.version not in (before, registry.built_version)
