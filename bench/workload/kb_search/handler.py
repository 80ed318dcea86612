"""Answers at once, and always the same: the time that a call takes is the gate's."""

import json
from pathlib import Path
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

RESULT: Final = json.loads(Path(__file__).with_name("example.json").read_bytes())["result"]


async def execute(args: Args, context: Context) -> ToolResult:
    return ok(RESULT)
