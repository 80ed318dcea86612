from typing import Any

import pytest
from mcp.types import Tool
from openai.types.chat import ChatCompletionFunctionTool, ChatCompletionFunctionToolParam
from openai.types.realtime import RealtimeFunctionTool, RealtimeFunctionToolParam
from pydantic import TypeAdapter

from antiphon.authoring.adapters import ADAPTERS, adapt_for_mcp, adapt_for_openai_chat, adapt_for_openai_realtime
from antiphon.tools.spec import Capability, Category, SideEffects
from tests.fakes.schemas import KB_SEARCH_PARAMETERS, make_spec

OUTPUTS = {"type": "object", "properties": {"results": {"type": "array"}}}


def test_there_is_an_adapter_for_each_provider() -> None:
    assert set(ADAPTERS) == {"openai_chat", "openai_realtime", "gemini", "mcp"}


@pytest.mark.parametrize("provider", sorted(ADAPTERS))
def test_each_adapter_includes_the_tool_name(provider: str) -> None:
    adapted = ADAPTERS[provider](make_spec())
    assert adapted.get("function", adapted)["name"] == "kb_search"


def test_a_chat_declaration_has_the_parameters_in_the_function() -> None:
    declared = adapt_for_openai_chat(make_spec())
    assert (declared["type"], declared["function"]["name"]) == ("function", "kb_search")
    assert declared["function"]["description"] == "Searches the knowledge base."
    assert set(declared["function"]["parameters"]["properties"]) == set(KB_SEARCH_PARAMETERS["properties"])


def shortened(parameters: dict[str, Any]) -> Any:
    return adapt_for_openai_chat(make_spec(parameters))["function"]["parameters"]


def test_limits_that_only_the_gate_needs_are_not_sent_to_chat_models() -> None:
    parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "required": [],
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "x", "description": "A word"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
            "options": {"type": "object", "default": {"pattern": "x"}, "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5, "enum": ["a", "b"]}},
        },
    }
    assert shortened(parameters) == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "A word"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
            "options": {"type": "object", "default": {"pattern": "x"}, "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        },
    }


def test_shortening_leaves_the_contract_itself_as_it_is() -> None:
    spec = make_spec()
    adapt_for_openai_chat(spec)
    assert spec.parameters == KB_SEARCH_PARAMETERS


def test_openais_chat_sdk_reads_back_what_it_was_given() -> None:
    tool = adapt_for_openai_chat(make_spec())
    assert ChatCompletionFunctionTool.model_validate(tool).model_dump(exclude_unset=True) == tool


def test_it_is_what_openais_sdk_asks_for_in_a_chat_request() -> None:
    tool = adapt_for_openai_chat(make_spec())
    assert TypeAdapter(ChatCompletionFunctionToolParam).validate_python(tool, strict=True) == tool


def test_the_declaration_is_flat() -> None:
    assert adapt_for_openai_realtime(make_spec()) == {
        "type": "function",
        "name": "kb_search",
        "description": "Searches the knowledge base.",
        "parameters": KB_SEARCH_PARAMETERS,
    }


def test_openais_realtime_sdk_reads_back_what_it_was_given() -> None:
    tool = adapt_for_openai_realtime(make_spec())
    assert RealtimeFunctionTool.model_validate(tool).model_dump(exclude_unset=True) == tool


def test_it_is_what_openais_sdk_asks_for_in_a_realtime_session() -> None:
    tool = adapt_for_openai_realtime(make_spec())
    assert TypeAdapter(RealtimeFunctionToolParam).validate_python(tool, strict=True) == tool


def test_a_reading_tool_says_that_it_changes_nothing() -> None:
    assert adapt_for_mcp(make_spec(outputs=OUTPUTS)) == {
        "name": "kb_search",
        "title": "Kb search",
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


def test_a_writing_tool_is_marked_destructive() -> None:
    spec = make_spec(category=Category.ACTION, side_effects=SideEffects.WRITES, idempotent=False)
    hints = adapt_for_mcp(spec)["annotations"]
    assert (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"]) == (False, True, False)


@pytest.mark.parametrize("changes", [{"uses": (Capability.FETCH,)}, {"tags": ("untrusted",)}])
def test_a_tool_with_untrusted_output_is_marked_open_world(changes: dict[str, Any]) -> None:
    assert adapt_for_mcp(make_spec(**changes))["annotations"]["openWorldHint"] is True


@pytest.mark.parametrize("outputs", [None, {"type": "array"}, {"anyOf": [{"type": "object"}, {"type": "null"}]}])
def test_outputs_that_are_not_an_object_are_omitted(outputs: dict[str, Any] | None) -> None:
    assert "outputSchema" not in adapt_for_mcp(make_spec(outputs=outputs))


def test_the_protocols_own_types_read_back_what_they_were_given() -> None:
    tool = adapt_for_mcp(make_spec(outputs=OUTPUTS))
    assert Tool.model_validate(tool).model_dump(exclude_none=True, by_alias=True) == tool
