"""The `tools` entry of an OpenAI or Azure Realtime session: the name stands beside the type, not below it."""

from typing import Any

from antiphon.tools.spec import ToolSpec


def adapt(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": spec.tool_id,
        "description": spec.description,
        "parameters": spec.parameters,
    }
