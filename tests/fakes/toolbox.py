"""Writes tool directories for tests: valid as they are, and broken in the one way that a test asks for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SUMMARY: Final = "Greets a person by name.\nUse it when someone wants to be greeted.\n"

HANDLER: Final = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    return ok({"greeting": f"Hello, {args['name']}."}, spoken=f"Hello, {args['name']}.")
"""

PREVIEW: Final = """

def preview(args: Args) -> str:
    return f"Greet {args['name']}?"
"""

PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "Who is greeted."},
        "loud": {"type": "boolean", "default": False, "description": "Whether to shout."},
    },
}


def document(tool_id: str, example: str = '{"name": "Ada"}') -> str:
    return f"""\
# {tool_id}

## Summary
Greets a person by name.

## Preconditions
None.

## Postconditions
The greeting is in the result.

## Invariants
Nothing is stored.

## Failure Modes
- VALIDATION: the name is empty.

## Examples
```args
{example}
```

## Common Mistakes
- Greeting someone who has not said a name.
"""


def schema(tool_id: str, **fields: Any) -> dict[str, Any]:
    """A valid schema.json with some fields changed; a field that is None is left out."""
    made = {
        "toolId": tool_id,
        "version": "1.0.0",
        "description": "Greets a person by name.",
        "category": "utility",
        "sideEffects": "none",
        "idempotent": True,
        "requiresConfirmation": False,
        "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 100,
        "parameters": PARAMETERS,
        **fields,
    }
    return {name: value for name, value in made.items() if value is not None}


def write_tool(
    root: Path,
    tool_id: str = "greet",
    *,
    directory: str | None = None,
    files: Mapping[str, str | bytes | None] | None = None,
    **fields: Any,
) -> Path:
    """The directory of a tool that builds without a problem.

    `fields` change schema.json (`category="action"`; None leaves one out), `files` change or add files by name (None
    leaves one out), `directory` is its name if that is not the id.
    """
    home = root / (directory or tool_id)
    contents: dict[str, str | bytes | None] = {
        "schema.json": json.dumps(schema(tool_id, **fields), indent=2),
        "doc_summary.md": SUMMARY,
        "doc.md": document(tool_id),
        "handler.py": HANDLER,
        **(files or {}),
    }
    home.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if content is not None:
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return home
