"""Finds the date a number of days before or after another."""

from datetime import timedelta

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dates import parse_date
from antiphon.words.speech import speak_date


async def execute(args: Args, context: Context) -> ToolResult:
    today = context.clock.now(context.session.zone).date()
    start = parse_date(args["from_date"], today) if "from_date" in args else today
    if start is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know which day {args['from_date']} is.",
            suggestion='Give from_date as "2026-03-04", "March 4th", "next Friday" or "Christmas".',
        )
    try:
        day = start + timedelta(days=args["days"])
    except OverflowError:
        return fail(
            ErrorType.VALIDATION,
            "That date is outside the calendar I know.",
            suggestion="The result must lie between the years 1 and 9999.",
        )
    verb = "was" if day < today else "is"
    return ok(
        {"date": day.isoformat(), "weekday": f"{day:%A}", "from_date": start.isoformat()},
        spoken=f"That {verb} {speak_date(day, today)}.",
    )
