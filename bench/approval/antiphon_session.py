"""A text session of our server whose tool requires confirmation, with the scripted model behind it."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from bench.approval.model import ARGUMENTS, TOOL
from bench.approval.turns import Turn
from tests.fakes.toolbox import document, write_tool
from tests.wire.caller import Message, call
from tests.wire.served import serve

HANDLER: Final = """\
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


def preview(args: Args) -> str:
    return f"Delete the album {args['album']}?"


async def execute(args: Args, context: Context) -> ToolResult:
    with (Path(__file__).parent / "deleted").open("a") as lines:
        lines.write(args["album"] + "\\n")
    return ok({"deleted": args["album"]})
"""


async def converse(url: str, sayings: Sequence[str], folder: Path) -> AsyncIterator[Turn]:
    """Runs a server in the folder whose text model is the one at this address, and says everything to it."""
    deleted = _write_tool(folder) / "deleted"
    with serve(folder, model={"text": f"openai:{url}#m"}) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            for said in sayings:
                before, mark = _count_lines(deleted), len(caller.received)
                await caller.send("text_message", text=said)
                await caller.until("state", state="idle")
                await caller.is_answered()
                results = [message for message in caller.received[mark:] if message["type"] == "tool_result"]
                yield Turn(said, [_name_outcome(result) for result in results], _count_lines(deleted) - before)


def _write_tool(folder: Path) -> Path:
    album = {"type": "string", "description": "The name of the album."}
    return write_tool(
        folder / "tools",
        TOOL,
        category="action",
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=True,
        parameters={
            "type": "object",
            "additionalProperties": False,
            "required": ["album"],
            "properties": {"album": album},
        },
        files={"handler.py": HANDLER, "doc.md": document(TOOL, json.dumps(ARGUMENTS))},
    )


def _count_lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def _name_outcome(result: Message) -> str:
    if result["ok"]:
        return "ran"
    return "asked" if result["result"]["error"]["type"] == "CONFIRMATION_REQUIRED" else "refused"
