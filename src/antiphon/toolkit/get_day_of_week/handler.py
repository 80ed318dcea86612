"""Tells the weekday of a date."""

from typing import Any

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
    data: dict[str, Any] = {"date": day.isoformat(), "weekday": f"{day:%A}"}
    subject = "today" if day == today else "that"
    told = f"{subject} {'was' if day < today else 'is'} {speak_date(day, today)}"
    if "expected" not in args:
        return ok(data, spoken=f"That{told.removeprefix(subject)}.")
    data["as_expected"] = args["expected"] == data["weekday"]
    return ok(data, spoken=f"{'Yes' if data['as_expected'] else 'No'}, {told}.")
