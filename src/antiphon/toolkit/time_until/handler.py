"""Tells how long it is until a day or a moment, or how long ago it was."""

from datetime import UTC, date, datetime, time, timedelta

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dates import parse_when
from antiphon.words.speech import speak_date, speak_duration, speak_time


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone)
    target = parse_when(args["target_date"], now)
    if target is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know when {args['target_date']} is.",
            suggestion='Name a day or a time: "Christmas", "next Friday", "tomorrow at 6 pm" or "2026-03-04T18:00".',
        )
    has_time = isinstance(target, datetime)
    moment = target if isinstance(target, datetime) else datetime.combine(target, time(), now.tzinfo)
    # Not `moment - now`: Python subtracts two times of one zone by wall clock, without the hour of a DST change.
    left = moment - now.astimezone(UTC)
    days = (moment.date() - now.date()).days
    return ok(
        {
            "target": moment.isoformat(timespec="seconds") if has_time else target.isoformat(),
            "has_time": has_time,
            "days": days,
            "seconds": round(left.total_seconds()),
            "past": left < timedelta(0) if has_time else days < 0,
        },
        spoken=_speak_moment(moment, left, now) if has_time else _speak_day(moment.date(), now.date()),
    )


def _speak_day(day: date, today: date) -> str:
    words = speak_date(day, today)
    days = (day - today).days
    if days in (-1, 0, 1):
        return f"That {('was yesterday', 'is today', 'is tomorrow')[days + 1]}, {words}."
    length = speak_duration(timedelta(days=days))
    return f"It's {length} until {words}." if days > 0 else f"That was {length} ago, on {words}."


def _speak_moment(moment: datetime, left: timedelta, now: datetime) -> str:
    days = (moment.date() - now.date()).days
    day = {-1: " yesterday", 0: "", 1: " tomorrow"}.get(days, f" on {speak_date(moment.date(), now.date())}")
    if days == 1 and moment.time() == time():
        day = " tonight"
    if left >= timedelta(0):
        return f"It's {speak_duration(left)} until {speak_time(moment)}{day}."
    return f"That was {speak_duration(left)} ago, at {speak_time(moment)}{day}."
