"""The `tools` entry of a chat completion, also for the servers that imitate it (Ollama, vLLM, llama.cpp)."""

from typing import Any

from antiphon.tools.spec import ToolSpec


def adapt(spec: ToolSpec) -> dict[str, Any]:
    # Without `strict`: strict mode refuses most of JSON Schema, and the gate validates the arguments anyway.
    return {
        "type": "function",
        "function": {"name": spec.tool_id, "description": spec.description, "parameters": spec.parameters},
    }
