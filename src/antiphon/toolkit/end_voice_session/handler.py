"""Ends the call and returns to text."""

from antiphon.tools.context import Args, Context
from antiphon.tools.result import After, ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    final_message = args.get("final_message", "").strip() or None
    already_ended = not context.session.active
    data = {
        "ended": True,
        "reason": args["reason"],
        "final_message": final_message,
        "already_ended": already_ended,
    }
    if already_ended:
        return ok(data)
    after = After.CURRENT_TURN if final_message else After.IMMEDIATE
    return ok(data, spoken=final_message, intents=[context.voice.end_session(after)])
