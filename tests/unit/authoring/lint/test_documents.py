from collections.abc import Callable

import pytest

from antiphon.authoring.lint.documents import SECTIONS, parse
from antiphon.authoring.problems import Problem, Severity
from tests.fakes.toolbox import document

Lint = Callable[..., tuple[Problem, ...]]


def of_doc(lint: Lint, text: str) -> list[tuple[str, str]]:
    """Field and message of each problem with doc.md."""
    problems = lint(files={"doc.md": text})
    assert {problem.file for problem in problems} <= {"doc.md"}
    return [(problem.field, problem.message) for problem in problems]


def test_a_summary_of_250_characters_is_accepted(lint: Lint) -> None:
    assert lint(files={"doc_summary.md": "é" * 124 + "\n" + "é" * 125 + "\n"}) == ()


def test_a_longer_summary_is_an_error(lint: Lint) -> None:
    [problem] = lint(files={"doc_summary.md": "a" * 125 + "\n" + "a" * 125})
    assert problem.file == "doc_summary.md"
    assert "has 251 characters" in problem.message


@pytest.mark.parametrize("lines", [1, 5])
def test_a_summary_of_one_line_or_of_five_is_a_warning(lint: Lint, lines: int) -> None:
    [problem] = lint(files={"doc_summary.md": "Greets.\n" * lines})
    assert problem.severity is Severity.WARNING


def test_an_empty_summary_is_an_error(lint: Lint) -> None:
    assert [problem.message for problem in lint(files={"doc_summary.md": " \n"})] == ["is empty"]


@pytest.mark.parametrize("title", SECTIONS)
def test_a_missing_section_is_named(lint: Lint, title: str) -> None:
    found = of_doc(lint, document("greet").replace(f"## {title}\n", "### Something else\n"))
    assert found == [(title, f'the section "## {title}" is missing.')]


def test_a_misspelt_section_is_recognised(lint: Lint) -> None:
    found = of_doc(lint, document("greet").replace("## Failure Modes", "## Failure modes"))
    assert found == [("Failure Modes", 'the section "## Failure Modes" is missing. Is it "Failure modes"?')]


def test_an_empty_section_is_reported(lint: Lint) -> None:
    assert of_doc(lint, document("greet").replace("None.\n", "")) == [("Preconditions", "the section is empty")]


def test_a_duplicate_section_is_reported(lint: Lint) -> None:
    assert of_doc(lint, document("greet") + "\n## Summary\nAgain.\n") == [("Summary", "the section appears 2 times")]


def test_sections_have_an_order(lint: Lint) -> None:
    text = (
        document("greet")
        .replace("## Invariants", "## X")
        .replace("## Summary", "## Invariants")
        .replace("## X", "## Summary")
    )
    [(field, message)] = of_doc(lint, text)
    assert field == "Invariants"
    assert message.startswith("the section is out of order")


def test_other_sections_may_come_in_between(lint: Lint) -> None:
    assert of_doc(lint, document("greet").replace("## Examples", "## Voice and text\nThe same.\n\n## Examples")) == []


def test_a_title_may_have_an_addition_in_parentheses(lint: Lint) -> None:
    assert of_doc(lint, document("greet").replace("## Common Mistakes", "## Common Mistakes (do not)")) == []


def test_a_heading_in_a_code_fence_is_not_a_section(lint: Lint) -> None:
    text = document("greet").replace("## Invariants\n", "```markdown\n## Invariants\n```\n")
    assert [field for field, _ in of_doc(lint, text)] == ["Invariants"]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ('{"name": "Ada"', "the arguments are not JSON: "),
        ('["Ada"]', "the arguments are not a JSON object"),
        ('{"name": 7}', 'the arguments would be refused: /name: 7 is not of type "string"'),
        ('{"name": "Ada", "age": 7}', "the arguments would be refused: /: "),
        ("{}", "the arguments would be refused: /: "),
    ],
)
def test_an_invalid_example_is_reported_with_its_line(lint: Lint, example: str, message: str) -> None:
    [(field, found)] = of_doc(lint, document("greet", example))
    assert field == "line 20"
    assert found.startswith(message)


def test_every_example_is_checked(lint: Lint) -> None:
    text = document("greet", '{"name": 1}').replace("## Common", "   ~~~~args\n   {}\n   ~~~~\n\n## Common")
    assert [field for field, _ in of_doc(lint, text)] == ["line 20", "line 24"]


def test_an_example_may_omit_arguments_with_defaults(lint: Lint) -> None:
    required = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "loud"],
        "properties": {"name": {"type": "string"}, "loud": {"type": "boolean", "default": False}},
    }
    assert lint(parameters=required) == ()


def test_json_in_another_fence_is_not_checked(lint: Lint) -> None:
    text = document("greet").replace("## Common", '```json\n{"ok": false}\n```\n\n## Common')
    assert of_doc(lint, text) == []


def test_examples_without_arguments_are_a_warning(lint: Lint) -> None:
    [problem] = lint(files={"doc.md": document("greet").replace("```args", "```json")})
    assert (problem.field, problem.severity) == ("Examples", Severity.WARNING)


def test_the_body_of_a_section_goes_up_to_the_next() -> None:
    text = document("greet")
    assert parse(text).body("Examples") == '```args\n{"name": "Ada"}\n```'
    assert parse(text).body("Nothing") == ""
