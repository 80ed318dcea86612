import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.adapters import ADAPTERS
from antiphon.authoring.build import Built, build, write
from antiphon.authoring.problems import BuildError, Severity
from antiphon.authoring.testing import StillClock
from tests.fakes.toolbox import PARAMETERS, SUMMARY, document, schema, write_tool

SENTENCES = 'data:\n  - sentences: ["please greet {name}"]\n'


def ids(built: Built) -> list[str]:
    return [tool.tool_id for tool in built.artifact.tools]


def messages(built: Built) -> list[str]:
    return [str(problem) for problem in built.problems]


def test_an_entry_holds_everything_that_loading_needs(tmp_path: Path) -> None:
    directory = write_tool(tmp_path, files={"sentences.yaml": SENTENCES})
    built = build([tmp_path])
    [tool] = built.artifact.tools
    assert built.ok
    assert tool.origin == str(directory)
    assert tool.spec == schema("greet")
    assert tool.summary == SUMMARY.strip()
    assert tool.documentation == document("greet").strip()
    assert tool.examples == '```args\n{"name": "Ada"}\n```'
    assert tool.sentences == {"data": [{"sentences": ["please greet {name}"]}]}
    assert tool.provider_schemas.keys() == ADAPTERS.keys()


def test_tools_are_ordered_by_id(tmp_path: Path) -> None:
    for name in ("b_tool", "a_tool", "c_tool"):
        write_tool(tmp_path, name)
    assert ids(build([tmp_path])) == ["a_tool", "b_tool", "c_tool"]


def test_the_problems_of_all_tools_are_reported_at_once(tmp_path: Path) -> None:
    write_tool(tmp_path, "a_tool", category="magic", latencyBudgetMs=0)
    write_tool(tmp_path, "b_tool")
    write_tool(tmp_path, "c_tool", files={"handler.py": None})
    built = build([tmp_path])
    assert messages(built) == [
        'a_tool/schema.json: category: must be one of "retrieval", "action", "utility"',
        "a_tool/schema.json: latencyBudgetMs: 0 is less than the minimum of 1",
        "c_tool/handler.py: is missing",
    ]
    assert not built.ok
    assert ids(built) == ["b_tool"]


def test_a_warning_does_not_stop_the_build(tmp_path: Path) -> None:
    write_tool(tmp_path, category="action", sideEffects="writes")
    built = build([tmp_path])
    assert built.ok
    assert [problem.severity for problem in built.problems] == [Severity.WARNING]


def test_a_schema_a_provider_cannot_express_is_a_problem(tmp_path: Path) -> None:
    children = {"children": {"type": "array", "items": {"$ref": "#"}}}
    write_tool(tmp_path, parameters={**PARAMETERS, "properties": {**PARAMETERS["properties"], **children}})
    [problem] = build([tmp_path]).errors
    assert (problem.file, problem.field) == ("schema.json", "parameters")
    assert not problem.message.startswith("greet")


def test_a_sentence_that_two_tools_claim_is_a_problem(tmp_path: Path) -> None:
    write_tool(tmp_path, "greet", files={"sentences.yaml": SENTENCES})
    write_tool(tmp_path, "welcome", files={"sentences.yaml": SENTENCES})
    assert {problem.file for problem in build([tmp_path]).errors} == {"sentences.yaml"}


# Which directories are tools


def test_hidden_private_and_empty_directories_are_not_tools(tmp_path: Path) -> None:
    write_tool(tmp_path)
    for name in (".hidden", "_drafts", "__pycache__"):
        write_tool(tmp_path, "x", directory=name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "left_over" / "__pycache__").mkdir(parents=True)
    (tmp_path / "left_over" / "__pycache__" / "handler.pyc").write_bytes(b"x")
    (tmp_path / "README.md").write_text("x")
    built = build([tmp_path])
    assert (ids(built), built.problems) == (["greet"], [])


def test_a_directory_without_a_schema_is_an_error(tmp_path: Path) -> None:
    write_tool(tmp_path, files={"schema.json": None})
    assert messages(build([tmp_path])) == ["greet/schema.json: is missing"]


def test_two_spellings_of_one_id_in_one_path_are_an_error(tmp_path: Path) -> None:
    write_tool(tmp_path, "kb_search")
    write_tool(tmp_path, "kb_search", directory="kb-search")
    [problem] = build([tmp_path]).errors
    assert problem.tool == "kb_search"
    assert "kb-search/" in problem.message
    assert "kb_search/" in problem.message


def test_a_custom_tool_replaces_a_built_in_one_with_a_notice(tmp_path: Path) -> None:
    write_tool(tmp_path / "builtin")
    own = write_tool(tmp_path / "own", version="2.0.0")
    built = build([tmp_path / "builtin", tmp_path / "own"])
    assert [tool.origin for tool in built.artifact.tools] == [str(own)]
    [problem] = built.problems
    assert problem.severity is Severity.WARNING
    assert "replaces the built-in" in problem.message


def test_a_replaced_tool_is_not_checked(tmp_path: Path) -> None:
    write_tool(tmp_path / "builtin", category="magic")
    write_tool(tmp_path / "own")
    assert build([tmp_path / "builtin", tmp_path / "own"]).ok


def test_the_same_path_twice_is_one_path(tmp_path: Path) -> None:
    write_tool(tmp_path)
    assert build([tmp_path, tmp_path / "greet" / ".."]).problems == []


def test_the_built_in_path_must_exist(tmp_path: Path) -> None:
    assert messages(build([tmp_path / "nowhere"])) == [
        f"{tmp_path}/nowhere: does not exist, so there are no tools in it"
    ]


def test_a_further_path_need_not_exist(tmp_path: Path) -> None:
    write_tool(tmp_path)
    built = build([tmp_path, tmp_path / "nowhere"])
    assert (ids(built), built.problems) == (["greet"], [])


def test_a_path_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    write_tool(tmp_path / "builtin")
    (tmp_path / "tools").write_text("x")
    assert messages(build([tmp_path / "builtin", tmp_path / "tools"])) == [
        f"{tmp_path}/tools: is not a directory, so there are no tools in it"
    ]


def test_a_disabled_tool_is_left_out_unread(tmp_path: Path) -> None:
    write_tool(tmp_path, "greet")
    write_tool(tmp_path, "kb_search", category="magic")
    built = build([tmp_path], disable=["kb-search"])
    assert (ids(built), built.problems) == (["greet"], [])


def test_disabling_an_unknown_tool_is_a_warning(tmp_path: Path) -> None:
    write_tool(tmp_path)
    [problem] = build([tmp_path], disable=["great"]).problems
    assert problem.severity is Severity.WARNING
    assert str(problem) == 'great: should be disabled, but there is no such tool. Did you mean "greet"?'


# The version


def version(*roots: Path) -> str:
    return build(roots).artifact.version


def test_a_version_is_eight_hex_digits_after_one_point_zero(tmp_path: Path) -> None:
    write_tool(tmp_path)
    prefix, digits = version(tmp_path)[:4], version(tmp_path)[4:]
    assert prefix == "1.0."
    assert len(bytes.fromhex(digits)) == 4


def test_the_same_files_have_the_same_version_wherever_they_lie(tmp_path: Path) -> None:
    write_tool(tmp_path / "here", "greet")
    write_tool(tmp_path / "here", "kb_search")
    write_tool(tmp_path / "there", "kb_search", directory="kb-search")
    write_tool(tmp_path / "elsewhere", "greet")
    assert version(tmp_path / "here") == version(tmp_path / "there", tmp_path / "elsewhere")


def test_the_version_does_not_depend_on_the_time(tmp_path: Path) -> None:
    write_tool(tmp_path)
    clock = StillClock()
    first = build([tmp_path], clock=clock).artifact
    clock.advance(seconds=3600)
    second = build([tmp_path], clock=clock).artifact
    assert (first.build_timestamp, second.build_timestamp) == ("2026-01-01T12:00:00+00:00", "2026-01-01T13:00:00+00:00")
    assert first.version == second.version


@pytest.mark.parametrize(
    "change",
    [
        {"tool_id": "other"},
        {"latencyBudgetMs": 101},
        {"files": {"doc.md": document("greet") + "More.\n"}},
        {"files": {"extra.txt": "x"}},
    ],
)
def test_another_tool_is_another_version(tmp_path: Path, change: dict[str, Any]) -> None:
    write_tool(tmp_path / "before")
    write_tool(tmp_path / "after", **change)
    assert version(tmp_path / "before") != version(tmp_path / "after")


def test_a_test_or_a_cache_does_not_change_the_version(tmp_path: Path) -> None:
    write_tool(tmp_path)
    before = version(tmp_path)
    write_tool(tmp_path, files={"tests/test_greet.py": "x", "__pycache__/x.pyc": "x"})
    assert version(tmp_path) == before


# The commit


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.real_time
def test_the_commit_is_that_of_the_repository_with_the_tools(tmp_path: Path) -> None:
    write_tool(tmp_path / "builtin")
    write_tool(tmp_path / "project" / "tools", "own")
    git(tmp_path / "project", "init", "--quiet")
    git(tmp_path / "project", "commit", "--quiet", "--allow-empty", "-m", "First")
    built = build([tmp_path / "builtin", tmp_path / "project" / "tools"])
    assert built.artifact.git_commit == git(tmp_path / "project", "rev-parse", "--short", "HEAD")


@pytest.mark.real_time
def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    write_tool(tmp_path)
    git(tmp_path, "init", "--quiet")
    assert build([tmp_path]).artifact.git_commit is None


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    write_tool(tmp_path)
    assert build([tmp_path]).artifact.git_commit is None


@pytest.mark.real_time
def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tool(tmp_path)
    git(tmp_path, "init", "--quiet")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build([tmp_path]).artifact.git_commit is None


# Writing


def test_the_artifact_is_json_with_the_expected_keys(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools")
    built = build([tmp_path / "tools"])
    write(built, tmp_path / "out" / "tool_registry.json")
    written = json.loads((tmp_path / "out" / "tool_registry.json").read_bytes())
    assert list(written) == ["format", "version", "gitCommit", "buildTimestamp", "tools"]
    assert written["format"] == 1
    assert list(written["tools"][0]) == [
        "toolId",
        "digest",
        "origin",
        "spec",
        "summary",
        "documentation",
        "examples",
        "sentences",
        "providerSchemas",
    ]


def test_a_build_with_errors_is_not_written(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", category="magic")
    with pytest.raises(BuildError, match="was not written, because some tools have errors"):
        write(build([tmp_path / "tools"]), tmp_path / "tool_registry.json")
    assert not (tmp_path / "tool_registry.json").exists()


def test_writing_leaves_nothing_but_the_artifact_which_others_may_read(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools")
    path = tmp_path / "out" / "tool_registry.json"
    for _ in range(2):
        write(build([tmp_path / "tools"]), path)
    assert os.listdir(path.parent) == ["tool_registry.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_leaves_the_old_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tool(tmp_path / "tools")
    path = tmp_path / "out" / "tool_registry.json"
    write(build([tmp_path / "tools"]), path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    write_tool(tmp_path / "tools", "another")
    with pytest.raises(BuildError, match="No space left on device"):
        write(build([tmp_path / "tools"]), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["tool_registry.json"]


def test_an_unwritable_path_is_reported(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BuildError, match="cannot be written"):
        write(build([tmp_path / "tools"]), tmp_path / "file" / "tool_registry.json")
