import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.show_code import handler
from antiphon.toolkit.show_code.handler import execute
from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.result import Flyout, FlyoutType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
PROGRAM = "for n in range(3):\n\tprint(n)\n"


async def test_the_code_reaches_the_page_unchanged() -> None:
    result = await execute({"code": PROGRAM, "language": "python"}, make_context())
    assert result.flyout == Flyout(FlyoutType.CODE, PROGRAM, language="python")


async def test_markup_stays_text() -> None:
    page = "<script>alert('hi')</script>"
    flyout = (await execute({"code": page, "language": "html"}, make_context())).flyout
    assert flyout is not None
    assert flyout.flyout_type is FlyoutType.CODE
    assert flyout.content == page


async def test_code_without_a_language_is_shown_too() -> None:
    result = await execute({"code": "ls -l"}, make_context())
    assert result.data == {"shown": True, "language": None, "lines": 1}


async def test_the_language_is_known_by_its_name_in_lower_case() -> None:
    assert (await execute({"code": "x = 1", "language": "Python"}, make_context())).data["language"] == "python"


@pytest.mark.parametrize(("code", "lines"), [("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\nb\n", 3), ("a\r\nb\r\n", 2)])
async def test_lines_are_counted_as_an_editor_counts_them(code: str, lines: int) -> None:
    assert (await execute({"code": code}, make_context())).data["lines"] == lines


async def test_the_spoken_answer_says_how_much_there_is_to_read() -> None:
    assert (await execute({"code": PROGRAM}, make_context())).spoken == "I've put 2 lines of code on the page."


async def test_one_line_is_described_in_the_singular() -> None:
    assert (await execute({"code": "ls"}, make_context())).spoken == "I've put one line of code on the page."


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({"code": PROGRAM, "language": "python"}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("args", "accepted"),
    [
        ({"code": "x"}, True),
        ({"code": "x" * 20_000}, True),
        ({"code": "x", "language": "c++"}, True),
        ({"code": "x", "language": "objective-c"}, True),
        ({"code": ""}, False),
        ({"code": " \n"}, False),
        ({"code": "x" * 20_001}, False),
        ({"code": "x", "language": ""}, False),
        ({"code": "x", "language": "a" * 31}, False),
        ({"code": "x", "language": 'js" onload="'}, False),
        ({"code": "x", "language": "python\n"}, False),
        ({"code": "x", "run": True}, False),
    ],
)
def test_the_bounds_of_the_arguments_are_enforced(args: dict[str, Any], accepted: bool) -> None:
    assert Arguments(SCHEMA["parameters"]).accepts(args) is accepted
