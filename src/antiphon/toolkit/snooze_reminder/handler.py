"""Has what rang last ring again."""

from datetime import UTC, timedelta
from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.schedules import parse_duration
from antiphon.words.speech import speak_length

LATEST: Final = timedelta(hours=1)
"""What rang longer ago is not what the user means."""
LONGEST: Final = timedelta(days=1)


async def execute(args: Args, context: Context) -> ToolResult:
    length = parse_duration(args["duration"].strip() or "ten minutes")
    if length is None or not timedelta(seconds=1) <= length <= LONGEST:
        return fail(
            ErrorType.VALIDATION,
            f"I can't snooze for “{args['duration']}”.",
            suggestion='Pass a length of time up to a day, such as "ten minutes".',
        )
    rang = await context.reminders.last_ring(LATEST)
    if rang is None:
        return fail(ErrorType.NOT_FOUND, "Nothing has rung in the last hour.")
    about = args.get("about")
    if about and not set(about.casefold().split()) <= {*rang.message.casefold().split(), rang.kind, "the", "my"}:
        return fail(ErrorType.NOT_FOUND, f"What rang last was {rang.message or f'your {rang.kind}'}.")
    now = context.clock.now(context.session.zone)
    due = (now.astimezone(UTC) + length).astimezone(now.tzinfo)
    again = await context.reminders.add(rang.kind, rang.message, due)
    return ok(again.data(now), spoken=f"All right, again in {speak_length(length)}.")
