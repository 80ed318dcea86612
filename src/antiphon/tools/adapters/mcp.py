"""The `Tool` of the Model Context Protocol."""

from typing import Any

from antiphon.tools.spec import ToolSpec


def adapt(spec: ToolSpec) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": spec.tool_id,
        "description": spec.description,
        "inputSchema": spec.parameters,
        "annotations": {
            "readOnlyHint": not spec.writes,
            # A contract does not tell additions from overwriting, so a client is told the worse of the two.
            "destructiveHint": spec.writes,
            "idempotentHint": spec.idempotent,
            "openWorldHint": spec.untrusted,
        },
    }
    # Clients up to protocol 2025-11-25 refuse an output schema whose root is not an object.
    if spec.outputs is not None and spec.outputs.get("type") == "object":
        tool["outputSchema"] = spec.outputs
    return tool
