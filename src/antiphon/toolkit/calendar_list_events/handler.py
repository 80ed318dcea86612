"""Lists the user's events in a range of time."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from antiphon.tools.capabilities.calendar import Event
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.tools.spec import Mode
from antiphon.words.periods import Period, parse_period
from antiphon.words.speech import speak_date, speak_day, speak_span, speak_time

DEFAULT: Final = timedelta(days=7)
LONGEST: Final = timedelta(days=92)
LISTED: Final = 50
SMALL: Final = frozenset(
    {"a", "an", "the", "my", "our", "with", "for", "at", "to", "of", "and", "appointment", "meeting", "s"}
)
"""Words that need not be in the title."""
MOST_FOUND: Final = 3
SAID: Final = {Mode.TEXT: 6, Mode.VOICE: 4}


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone).replace(microsecond=0)
    about = args.get("about")
    period = Period(now, now + LONGEST) if about and "range" not in args else _range(args.get("range"), now)
    if period is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know when {args['range']} is.",
            suggestion='Name a day or a range: "tomorrow", "next week" or "2026-01-13 to 2026-01-17".',
        )
    if period.end.astimezone(UTC) - period.start.astimezone(UTC) > LONGEST:
        return fail(ErrorType.VALIDATION, "I can look at most three months at a time.", suggestion="Shorten the range.")
    events = await context.calendar.events(period.start, period.end)
    if about:
        events = _only_next([event for event in events if _words(about) <= _words(event.title)])
    said = SAID[context.session.mode]
    coming = next((event for event in events if event.end > now), None)
    words = None if coming is None else f"Your next event is {_speak(coming, now.date())}."
    return ok(
        {
            "start": _iso(period.start),
            "end": _iso(period.end),
            "count": len(events),
            "events": [_fields(event) for event in events[:LISTED]],
            "next": words,
        },
        spoken=_speak_found(events, about, now) if about else _speak_all(events, args.get("range"), period, now, said),
    )


def _words(title: str) -> set[str]:
    return set(re.findall(r"\w+", title.casefold())) - SMALL


def _only_next(events: Sequence[Event]) -> list[Event]:
    """Leaves the next occurrence of each series."""
    first = {event.series or event.id: event for event in reversed(events)}
    return [event for event in events if event is first[event.series or event.id]]


def _speak_found(events: Sequence[Event], about: str, now: datetime) -> str:
    if not events:
        return f"I can't find {about} in your calendar."
    told = [f"“{each.title}” is {speak_span(each.start, each.end, now.date())}" for each in events[:MOST_FOUND]]
    return f"{'; '.join(told)}."


def _range(words: str | None, now: datetime) -> Period | None:
    if words is None:
        return Period(now, now + DEFAULT)
    period = parse_period(words, now)
    # "Tomorrow at three" means what is on at that time.
    if period is not None and period.is_moment:
        return Period(period.start, period.start + timedelta(minutes=1))
    return period


def _fields(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": event.id,
        "title": event.title,
        "start": _iso(event.start),
        "end": _iso(event.end),
        "all_day": event.all_day,
        "calendar": event.calendar,
        "recurring": event.series is not None,
        "attendees": list(event.attendees),
    }
    return fields if event.link is None else {**fields, "link": event.link}


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _speak_all(events: Sequence[Event], words: str | None, period: Period, now: datetime, said: int) -> str:
    when = _speak_range(words, period, now.date())
    if not events:
        return f"You have nothing on your calendar {when}."
    is_day = period.end.astimezone(UTC) - period.start.astimezone(UTC) <= timedelta(days=1)
    count = "one event" if len(events) == 1 else f"{len(events)} events"
    listed = [_speak_in_day(event) if is_day else _speak(event, now.date()) for event in events[:said]]
    more = len(events) - len(listed)
    if more:
        listed.append(f"{more} more")
    joined = listed[0] if len(listed) == 1 else f"{'; '.join(listed[:-1])}; and {listed[-1]}"
    return f"You have {count} {when}: {joined}."


def _speak_range(words: str | None, period: Period, today: date) -> str:
    if words is None:
        return "in the next seven days"
    length = period.end.astimezone(UTC) - period.start.astimezone(UTC)
    if length <= timedelta(minutes=1):
        return f"{speak_day(period.start.date(), today)} at {speak_time(period.start)}"
    if length <= timedelta(hours=25):
        whole = period.start.hour == period.end.hour == 0
        return speak_day(period.start.date(), today) if whole else speak_span(period.start, period.end, today)
    last = (period.end - timedelta(seconds=1)).date()
    return f"from {speak_date(period.start.date(), today)} to {speak_date(last, today)}"


def _speak(event: Event, today: date) -> str:
    return f"{event.title}, {speak_span(event.start, event.end, today)}"


def _speak_in_day(event: Event) -> str:
    if event.all_day:
        return f"{event.title}, all day"
    return f"{event.title}, {speak_time(event.start)} to {speak_time(event.end)}"
