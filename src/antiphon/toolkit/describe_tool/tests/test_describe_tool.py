from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.describe_tool.handler import execute
from antiphon.tools.context import Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Failure
from antiphon.tools.spec import Capability

CALCULATE = """# calculate

## Summary
Works out one `expression`,
written or said. Use it often.

## Preconditions
- None.
"""


@dataclass(frozen=True, slots=True)
class Documents:
    texts: Mapping[str, str] = field(default_factory=lambda: {"calculate": CALCULATE, "tell_joke": "# tell_joke\n"})

    def tool_ids(self) -> list[str]:
        return list(self.texts)

    def documentation(self, tool_id: str) -> str | None:
        return self.texts.get(tool_id)


@pytest.fixture
def context() -> Context:
    return make_context("describe_tool", granted={Capability.CATALOG: Documents()})


async def refusal_of(tool_id: str, context: Context) -> Failure:
    error = (await execute({"tool_id": tool_id}, context)).error
    assert error is not None
    return error


async def test_the_full_documentation_is_returned(context: Context) -> None:
    result = await execute({"tool_id": "calculate"}, context)
    assert result.data == {"tool_id": "calculate", "documentation": CALCULATE}


async def test_the_first_sentence_of_the_summary_is_spoken(context: Context) -> None:
    result = await execute({"tool_id": "calculate"}, context)
    assert result.spoken == "About calculate: Works out one expression, written or said."


async def test_a_document_without_a_summary_is_still_returned(context: Context) -> None:
    result = await execute({"tool_id": "tell_joke"}, context)
    assert result.spoken == "About tell joke: I have its documentation."


@pytest.mark.parametrize("name", ["tell joke", "Tell-Joke", " tell_joke "])
async def test_a_name_may_be_written_as_it_is_spoken(name: str, context: Context) -> None:
    assert (await execute({"tool_id": name}, context)).data["tool_id"] == "tell_joke"


@pytest.mark.parametrize(("name", "nearest"), [("calculator", "calculate"), ("joke", "tell_joke")])
async def test_an_unknown_name_is_answered_with_the_nearest(name: str, nearest: str, context: Context) -> None:
    error = await refusal_of(name, context)
    assert error.type is ErrorType.NOT_FOUND
    assert error.message == f"There is no tool called {name}."
    assert error.suggestion == f"Did you mean {nearest}?"


async def test_a_name_close_to_no_tool_gets_no_suggestion(context: Context) -> None:
    assert (await refusal_of("qqqq", context)).suggestion is None


async def test_an_empty_catalog_gives_no_suggestion() -> None:
    context = make_context("describe_tool", granted={Capability.CATALOG: Documents({})})
    assert (await refusal_of("calculate", context)).suggestion is None
