"""Runs `antiphon serve` with the tool of the script, and the models that it may use."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Final

from bench.load.process import ServerProcess
from bench.outages.call import DESCRIPTION, PROPERTIES, TOOL
from bench.outages.script import GREETING
from tests.fakes.toolbox import document, write_tool

ROOT: Final = Path(__file__).parents[2]
MODELS: Final = ("gemini-3.8-live", "gemini-2.5-flash-native-audio-preview-12-2025")
"""The simulator's models that all contenders may use, best first. One is Pipecat's default, the other LiveKit's."""
HANDLER: Final = """\
import asyncio
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    with Path({orders!r}).open("a") as lines:
        lines.write(args["topping"] + "\\n")
    await asyncio.sleep({tool_s})
    return ok({{"ordered": args["topping"]}})
"""


@contextmanager
def serve(folder: Path, settings: str, *, orders: Path, tool_s: float, env: Mapping[str, str]) -> Iterator[str]:
    """Runs the server in the folder with these settings (TOML), and gives its address. Raises `Crashed`."""
    _write_tool(folder, orders, tool_s)
    (folder / "antiphon.toml").write_text(settings)
    variables = {**os.environ, **env, "ANTIPHON_DATA_DIR": str(folder / "data"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "antiphon", "serve", "--port", "0"]
    with (
        (folder / "serve.log").open("w+") as log,
        Popen(command, cwd=folder, env=variables, stdin=PIPE, stdout=PIPE, stderr=log, text=True) as process,
    ):
        try:
            host, port = ServerProcess(process, log).address
            yield f"ws://{host}:{port}/ws"
        finally:
            process.terminate()


def write_settings(url: str, text_model: str) -> str:
    """Returns settings with a ladder: the models of the simulator at this address, and then the local voice."""
    best, second = (f"gemini-live:{url}#{model}" for model in MODELS)
    return f"""\
[assistant]
greeting = "{GREETING}"

[model]
text = "{text_model}"
voice = "{best}"

[ladder.voice]
3 = "{best}"
2 = "{second}"
1 = "cascade"
"""


def _write_tool(folder: Path, orders: Path, tool_s: float) -> None:
    write_tool(
        folder / "tools",
        TOOL,
        description=DESCRIPTION,
        category="action",
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=False,
        latencyBudgetMs=5_000,
        parameters={
            "type": "object",
            "additionalProperties": False,
            "required": ["topping"],
            "properties": PROPERTIES,
        },
        files={
            "handler.py": HANDLER.format(orders=str(orders), tool_s=tool_s),
            "doc.md": document(TOOL, json.dumps({"topping": "mushrooms"})),
        },
    )
