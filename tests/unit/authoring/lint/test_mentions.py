"""Tools that are named in the words of another tool."""

from pathlib import Path

import pytest

from antiphon.authoring import build
from antiphon.authoring.build import Built
from antiphon.compose import TOOLKIT
from tests.fakes.toolbox import HANDLER, SUMMARY, document, write_tool

OUTPUTS = {"type": "object", "properties": {"spoken_name": {"type": "string"}}}
SUGGESTING = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail

ADVICE = "Call find_person first."


async def execute(args: Args, context: Context) -> ToolResult:
    return fail(ErrorType.NOT_FOUND, "There is nobody of that name.", suggestion=ADVICE)
"""


def built(tmp_path: Path, *more: str, **changes: str) -> Built:
    files = {f"{name.replace('_md', '.md').replace('_py', '.py')}": text for name, text in changes.items()}
    write_tool(tmp_path, "greet_by_name", files={"doc.md": document("greet_by_name"), **files}, outputs=OUTPUTS)
    for tool_id in more:
        write_tool(tmp_path, tool_id)
    return build.build([tmp_path])


def with_words(words: str) -> str:
    return document("greet_by_name").replace("- Greeting someone who has not said a name.", f"- {words}")


@pytest.mark.parametrize("words", ["Use find_person before it.", "Use `find_person` before it.", "Not find_person."])
def test_a_document_that_names_a_tool_that_does_not_exist_is_an_error_with_its_line(tmp_path: Path, words: str) -> None:
    [error] = built(tmp_path, doc_md=with_words(words)).errors
    assert (
        str(error) == "greet_by_name/doc.md: line 24: names find_person, which is not a tool, a parameter or an output."
    )


def test_a_summary_is_checked_too(tmp_path: Path) -> None:
    [error] = built(tmp_path, doc_summary_md=f"{SUMMARY}See greet_by_names.\n").errors
    assert (error.file, error.field) == ("doc_summary.md", "line 3")
    assert error.message.endswith('Did you mean "greet_by_name"?')


def test_a_suggestion_of_a_handler_is_checked_too(tmp_path: Path) -> None:
    [error] = built(tmp_path, handler_py=SUGGESTING).errors
    assert (error.file, error.field) == ("handler.py", "line 5")


def test_a_tool_that_exists_can_be_named(tmp_path: Path) -> None:
    assert built(tmp_path, "find_person", doc_md=with_words("Use find_person."), handler_py=SUGGESTING).ok


def test_a_tool_that_is_switched_off_can_be_named(tmp_path: Path) -> None:
    built(tmp_path, "find_person", doc_md=with_words("Use find_person."))
    assert build.build([tmp_path], disable=["find_person"]).ok


@pytest.mark.parametrize(
    "words",
    [
        "The output `spoken_name` is read aloud.",
        "It is read_only, and limited by window_s.",
        "See https://example.org/some_page and docs/some_page.md, or some_page.md.",
        "Set `some_setting=1`, or call `some_function()` of `some_module.part`.",
        "Write to some_one@example.org, and mind $some_variable.",
        "`local_key` is a key of the data.",
        'A fence explains `in_fence`.\n\n```json\n{"in_fence": 1}\n```',
        "MAX_LENGTH and __init__ are no tools, nor are e-mail and snake-case.",
    ],
)
def test_other_names_are_left_alone(tmp_path: Path, words: str) -> None:
    handler = f"{HANDLER}\n\nKEYS = {{'local_key': 1}}\n"
    found = built(tmp_path, doc_md=with_words(words), handler_py=handler)
    assert found.ok, found.errors


def test_the_built_in_tools_name_only_tools_that_exist() -> None:
    assert build.build([TOOLKIT], shipped=TOOLKIT).errors == []
