"""Tells a joke."""

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

from .jokes import JOKES


async def execute(args: Args, context: Context) -> ToolResult:
    joke = context.rng.choice(JOKES)
    return ok({"joke": joke}, spoken=joke)
