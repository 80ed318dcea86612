from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.authoring.lint.draft import check
from antiphon.authoring.problems import Problem
from antiphon.tools.source import read
from tests.fakes.toolbox import document, write_tool

Lint = Callable[..., tuple[Problem, ...]]


def places(problems: tuple[Problem, ...]) -> set[tuple[str, str]]:
    return {(problem.file, problem.field) for problem in problems}


def test_five_mistakes_in_five_files_are_reported_at_once(lint: Lint) -> None:
    problems = lint(
        category="magic",
        files={
            "doc_summary.md": "a" * 300,
            "doc.md": document("greet").replace("## Invariants", "## Other"),
            "handler.py": "def execute(args, context): ...\n",
            "sentences.yaml": 'data:\n  - sentences: ["hello {name}"]\n',
        },
    )
    assert places(problems) >= {
        ("schema.json", "category"),
        ("doc_summary.md", ""),
        ("doc.md", "Invariants"),
        ("handler.py", "execute"),
        ("sentences.yaml", ""),
    }


def test_every_missing_file_is_named(lint: Lint) -> None:
    names = ["schema.json", "doc_summary.md", "doc.md", "handler.py"]
    problems = lint(files={"notes.txt": "x", **dict.fromkeys(names)})
    assert [(problem.file, problem.message) for problem in problems] == [(name, "is missing") for name in names]


def test_the_other_files_are_checked_without_a_schema(lint: Lint) -> None:
    assert places(lint(files={"schema.json": None, "handler.py": "", "doc_summary.md": ""})) == {
        ("schema.json", ""),
        ("handler.py", "execute"),
        ("doc_summary.md", ""),
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"toolId": "greet", "toolId": "greet"}', 'is not JSON: "toolId" appears twice in the same object'),
        ("[]", "is not a JSON object"),
        ("{", "is not JSON: "),
    ],
)
def test_a_schema_that_is_not_a_json_object_is_reported(lint: Lint, content: str, message: str) -> None:
    [problem] = lint(files={"schema.json": content})
    assert problem.file == "schema.json"
    assert problem.message.startswith(message)


@pytest.mark.parametrize("name", ["doc.md", "doc_summary.md", "sentences.yaml"])
def test_a_file_that_is_not_utf_8_is_reported(lint: Lint, name: str) -> None:
    [problem] = lint(files={name: b"caf\xe9"})
    assert (problem.file, problem.message) == (name, "is not UTF-8: unexpected end of data at byte 3")


def test_sentences_that_are_not_yaml_are_reported_with_the_line(lint: Lint) -> None:
    [problem] = lint(files={"sentences.yaml": "data:\n  - sentences: [\n"})
    assert (problem.file, problem.field) == ("sentences.yaml", "line 3")
    assert problem.message.startswith("is not YAML: ")


@pytest.mark.parametrize("content", ["on: 1\n", "data: !!binary /w==\n"])
def test_sentences_that_json_cannot_represent_are_an_error(lint: Lint, content: str) -> None:
    assert places(lint(files={"sentences.yaml": content})) == {("sentences.yaml", "")}


def test_sentences_are_checked_against_the_parameters(lint: Lint) -> None:
    assert lint(files={"sentences.yaml": 'data:\n  - sentences: ["please greet {name}"]\n'}) == ()
    problems = lint(files={"sentences.yaml": 'data:\n  - sentences: ["please greet {person}"]\n'})
    assert places(problems) == {("sentences.yaml", "")}


def test_a_problem_reads_as_place_field_message() -> None:
    assert str(Problem("greet", "schema.json", "category", "is missing")) == "greet/schema.json: category: is missing"
    assert str(Problem("greet", "", "", "is there twice")) == "greet: is there twice"


def test_a_draft_holds_what_the_artifact_needs(tmp_path: Path) -> None:
    files = {
        "sentences.yaml": 'data:\n  - sentences: ["please greet {name}"]\n',
        "doc_summary.md": "Greets.\r\nYes.\r\n",
    }
    draft = check(read(write_tool(tmp_path, files=files)))
    assert draft.ok
    assert draft.summary == "Greets.\nYes."
    assert draft.document.startswith("# greet")
    assert draft.examples == '```args\n{"name": "Ada"}\n```'
    assert draft.sentences == {"data": [{"sentences": ["please greet {name}"]}]}
    assert draft.spec is not None
    assert draft.spec.tool_id == "greet"
