"""Tells the weekday of a date."""

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dates import parse_date
from antiphon.words.speech import speak_date


async def execute(args: Args, context: Context) -> ToolResult:
    today = context.clock.now(context.session.zone).date()
    day = parse_date(args["date"], today)
    if day is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know which day {args['date']} is.",
            suggestion='Give the date as "2026-03-04", "March 4th", "next Friday" or "Christmas".',
        )
    verb = "was" if day < today else "is"
    return ok(
        {"date": day.isoformat(), "weekday": f"{day:%A}"},
        spoken=f"That {verb} {speak_date(day, today)}.",
    )
