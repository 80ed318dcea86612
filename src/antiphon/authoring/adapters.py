"""Converts a tool's contract to each provider's format, at build time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from antiphon.authoring import gemini
from antiphon.tools.spec import ToolSpec

_FOR_THE_GATE: Final = frozenset({"$schema", "minLength", "maxLength", "minItems", "maxItems", "pattern"})
_SAYING_NOTHING: Final[Sequence[tuple[str, Any]]] = (("additionalProperties", False), ("required", []))
_OF_NAMES: Final = frozenset({"properties", "$defs", "patternProperties"})
"""Keywords whose objects have names as keys, which are not keywords."""
_OF_VALUES: Final = frozenset({"default", "enum", "const", "examples"})


def adapt_for_openai_chat(spec: ToolSpec) -> dict[str, Any]:
    """Makes the `tools` entry of a chat completion, also for compatible servers (Ollama, vLLM, llama.cpp)."""
    # Without `strict`: strict mode refuses most of JSON Schema, and the gate validates the arguments anyway.
    parameters = _shorten(spec.parameters)
    return {
        "type": "function",
        "function": {"name": spec.tool_id, "description": spec.description, "parameters": parameters},
    }


def _shorten(schema: Any) -> Any:
    """Leaves out limits that only the gate needs: a small model on a CPU takes seconds to read those of all tools."""
    if isinstance(schema, list):
        return [_shorten(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    short: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _FOR_THE_GATE or (keyword, value) in _SAYING_NOTHING:
            continue
        if keyword in _OF_NAMES:
            short[keyword] = {name: _shorten(each) for name, each in value.items()}
        else:
            short[keyword] = value if keyword in _OF_VALUES else _shorten(value)
    return short


def adapt_for_openai_realtime(spec: ToolSpec) -> dict[str, Any]:
    """Makes the `tools` entry of an OpenAI or Azure Realtime session, in which the name is next to the type."""
    return {
        "type": "function",
        "name": spec.tool_id,
        "description": spec.description,
        "parameters": spec.parameters,
    }


def adapt_for_mcp(spec: ToolSpec) -> dict[str, Any]:
    """Makes the `Tool` of the Model Context Protocol."""
    tool: dict[str, Any] = {
        "name": spec.tool_id,
        "title": spec.shown_title,
        "description": spec.description,
        "inputSchema": spec.parameters,
        "annotations": {
            "readOnlyHint": not spec.writes,
            # A contract does not distinguish additions from overwriting, so the worse of the two is declared.
            "destructiveHint": spec.writes,
            "idempotentHint": spec.idempotent,
            "openWorldHint": spec.untrusted,
        },
    }
    # Clients up to protocol 2025-11-25 refuse an output schema whose root is not an object.
    if spec.outputs is not None and spec.outputs.get("type") == "object":
        tool["outputSchema"] = spec.outputs
    return tool


ADAPTERS: Final[Mapping[str, Callable[[ToolSpec], dict[str, Any]]]] = {
    "openai_chat": adapt_for_openai_chat,
    "openai_realtime": adapt_for_openai_realtime,
    "gemini": gemini.adapt,
    "mcp": adapt_for_mcp,
}
