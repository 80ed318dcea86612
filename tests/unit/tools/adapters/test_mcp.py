from typing import Any

import pytest
from mcp.types import Tool

from antiphon.tools.adapters.mcp import adapt
from antiphon.tools.spec import Capability, Category, SideEffects
from tests.fakes.schemas import KB_SEARCH_PARAMETERS, make_spec

OUTPUTS = {"type": "object", "properties": {"results": {"type": "array"}}}


def test_a_reading_tool_says_that_it_changes_nothing() -> None:
    assert adapt(make_spec(outputs=OUTPUTS)) == {
        "name": "kb_search",
        "description": "Searches the knowledge base.",
        "inputSchema": KB_SEARCH_PARAMETERS,
        "outputSchema": OUTPUTS,
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def test_a_writing_tool_is_taken_for_destructive() -> None:
    spec = make_spec(category=Category.ACTION, side_effects=SideEffects.WRITES, idempotent=False)
    hints = adapt(spec)["annotations"]
    assert (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"]) == (False, True, False)


@pytest.mark.parametrize("changes", [{"uses": (Capability.FETCH,)}, {"tags": ("untrusted",)}])
def test_a_tool_that_brings_strangers_words_is_open_to_the_world(changes: dict[str, Any]) -> None:
    assert adapt(make_spec(**changes))["annotations"]["openWorldHint"] is True


@pytest.mark.parametrize("outputs", [None, {"type": "array"}, {"anyOf": [{"type": "object"}, {"type": "null"}]}])
def test_outputs_that_are_no_object_are_left_out(outputs: dict[str, Any] | None) -> None:
    assert "outputSchema" not in adapt(make_spec(outputs=outputs))


def test_the_protocols_own_types_read_back_what_they_were_given() -> None:
    tool = adapt(make_spec(outputs=OUTPUTS))
    assert Tool.model_validate(tool).model_dump(exclude_none=True, by_alias=True) == tool
