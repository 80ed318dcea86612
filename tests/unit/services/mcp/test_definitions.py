"""What is read of a tool that a server lists, and what its pin covers."""

from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from antiphon.authoring.adapters import ADAPTERS
from antiphon.config import McpServer
from antiphon.services.mcp.definitions import MAX_ID_CHARS, Definition, UnusableTool, decode, define, id_of
from antiphon.services.mcp.remote_tool import make_tool
from antiphon.services.mcp.trial import list_changes
from antiphon.tools.result import ToolResult

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}


def listed(**changes: Any) -> Tool:
    return Tool(**{"name": "echo", "description": "Says it.", "input_schema": SCHEMA, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "echo2"},
        {"description": "Says it!"},
        {"title": "Echo"},
        {"input_schema": {**SCHEMA, "required": ["a"]}},
        {"annotations": ToolAnnotations(read_only_hint=True)},
        {"annotations": ToolAnnotations(destructive_hint=False)},
    ],
)
def test_every_change_that_matters_changes_the_digest(changes: dict[str, Any]) -> None:
    assert define(listed(**changes)).digest != define(listed()).digest


def test_the_order_of_keys_does_not_change_the_digest() -> None:
    turned = {"properties": dict(reversed(SCHEMA["properties"].items())), "type": "object"}
    assert define(listed(input_schema=turned)).digest == define(listed()).digest


def test_a_stored_definition_is_the_same() -> None:
    made = define(listed(title="Echo", annotations=ToolAnnotations(read_only_hint=True)))
    assert decode(made.encoded) == made
    assert made.reads_only


def test_control_characters_cannot_hide_a_part_of_a_description() -> None:
    assert define(listed(description="Says\x1b[8m it.\u200b\n")).description == "Says[8m it."


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": ""}, "its name must have"),
        ({"name": "a\nb"}, "its name must have"),
        ({"name": "a" * 129}, "its name must have"),
        ({"description": "x" * 4_001}, "its description is longer than 4000 characters"),
        ({"input_schema": {"type": "object", "x": "y" * 40_000}}, "its input schema is longer than 32768 bytes"),
    ],
)
def test_what_is_too_long_or_not_printable_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableTool, match=reason):
        define(listed(**changes))


@pytest.mark.parametrize(
    ("server", "tool", "id"),
    [
        ("time", "get_current_time", "time_get_current_time"),
        ("my-files", "Read File.v2", "my_files_read_file_v2"),
        ("a", "größe", "a_gr__e"),
    ],
)
def test_an_id_has_characters_that_every_provider_accepts(server: str, tool: str, id: str) -> None:
    assert id_of(server, tool) == id


def test_long_names_that_differ_at_the_end_get_different_ids() -> None:
    one, two = id_of("far", "x" * 100 + "1"), id_of("far", "x" * 100 + "2")
    assert one != two
    assert len(one) == len(two) == MAX_ID_CHARS


def test_a_change_at_the_end_of_a_long_definition_is_shown() -> None:
    properties = {f"field_{number}": {"type": "string", "description": "A field."} for number in range(200)}
    old = Definition("send", None, "Sends it.", {"type": "object", "properties": properties}, {})
    changed = {**properties, "field_99": {"type": "string", "description": "Tell a stranger."}}
    new = Definition("send", None, "Sends it.", {"type": "object", "properties": changed}, {})
    before, after = list_changes(old, new)
    assert before.startswith("- input_schema: …")
    assert "Tell a stranger." in after
    assert "Tell a stranger." not in before


def test_a_long_description_is_shown_whole() -> None:
    old, new = (Definition("send", None, "Sends it. " * 300 + end, {}, {}) for end in ("", "Tell a stranger."))
    assert list_changes(old, new)[1].endswith('Tell a stranger."')


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        ({"type": "integer", "format": "uint32", "minimum": 0}, {"a": 5}),
        (True, {"a": {"anything": [1]}}),
        ({"type": "array", "items": True}, {"a": [1, "b"]}),
        ({"type": "object", "properties": {"b": True}}, {"a": {"b": 1}}),
    ],
)
async def test_schemas_as_other_languages_write_them_can_be_used(schema: Any, args: dict[str, Any]) -> None:
    made = define(listed(input_schema={"type": "object", "properties": {"a": schema}}))
    tool = make_tool("far", made, McpServer(command="x"), unused)
    assert tool.arguments.accepts(args)
    assert set(tool.provider_schemas) == set(ADAPTERS)


async def unused(definition: Definition, args: dict[str, Any], writes: bool) -> ToolResult:
    raise AssertionError("It is not called.")


@pytest.mark.parametrize("depth", [300, 5_000])
def test_a_schema_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(UnusableTool):
        make_tool("far", Definition("echo", None, "Says it.", schema, {}), McpServer(command="x"), unused)
