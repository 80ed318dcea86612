"""Flips a coin."""

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    result = context.rng.choice(("heads", "tails"))
    return ok({"result": result}, spoken=f"It's {result}.")
