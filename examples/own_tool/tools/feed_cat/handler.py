"""Feeds the cat. A real one would call its feeder here."""

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


def preview(args: Args) -> str:
    return f"Shall I give the cat a {args.get('portion', 'small')} portion?"


async def execute(args: Args, context: Context) -> ToolResult:
    portions = 1 + await context.storage.get("portions", 0)
    await context.storage.set("portions", portions)
    times = "once" if portions == 1 else f"{portions} times"
    return ok(
        {"portion": args["portion"], "portions_so_far": portions},
        spoken=f"The cat got a {args['portion']} portion. I have fed it {times}.",
    )
