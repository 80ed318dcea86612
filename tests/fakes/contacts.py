"""Tools of a project that ask for a telephone number, an e-mail address and a spelled word."""

import json
from pathlib import Path
from typing import Any, Final

from tests.fakes.toolbox import document, write_tool

_HANDLER: Final = """\
import json
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    with Path(__file__).parents[2].joinpath("saved.jsonl").open("a") as file:
        file.write(json.dumps(args) + "\\n")
    return ok(dict(args), spoken="Saved.")
"""


def write_contacts(folder: Path) -> None:
    """Adds the tools to the project in this folder."""
    _write(
        folder,
        "save_phone",
        {"name": "Tom", "phone": "5551234"},
        """\
data:
  - sentences: ["save a [phone] number for {name}"]
slot_examples: {name: Tom}
arguments:
  phone: {reader: digits, ask: "What's the number?"}
""",
    )
    _write(
        folder,
        "save_address",
        {"email": "ann@example.org"},
        """\
data:
  - sentences: ["save an [email] address"]
arguments:
  email: {reader: email, ask: "What's the address?"}
""",
    )
    _write(
        folder,
        "save_surname",
        {"surname": "smith"},
        """\
data:
  - sentences: ["save a surname"]
arguments:
  surname: {reader: spelling, ask: "How is it spelled?"}
""",
    )


def saved(folder: Path) -> list[dict[str, Any]]:
    """The arguments of all calls so far."""
    file = folder / "saved.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _write(folder: Path, tool_id: str, example: dict[str, str], sentences: str) -> None:
    write_tool(
        folder / "tools",
        tool_id,
        category="action",
        sideEffects="writes",
        idempotent=False,
        parameters={
            "type": "object",
            "additionalProperties": False,
            "required": list(example),
            "properties": {
                name: {"type": "string", "minLength": 3, "maxLength": 80, "description": "What is saved."}
                for name in example
            },
        },
        files={"handler.py": _HANDLER, "doc.md": document(tool_id, json.dumps(example)), "sentences.yaml": sentences},
    )
