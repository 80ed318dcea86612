"""Finds the free and the busy times of the user's calendar."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from antiphon.tools.capabilities.calendar import Calendar
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ToolResult, ok
from antiphon.words.periods import parse_period
from antiphon.words.speech import speak_span, speak_time

from .gaps import Slot, find_gaps

LONGEST: Final = timedelta(days=31)
SLOTS_SAID: Final = 4
FORMS: Final = 'Give it as "2026-01-13", "2026-01-13T14:00:00+01:00", "tomorrow" or "next week".'


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone).replace(microsecond=0)
    whole = _range(args, now)
    calendar = context.calendar
    names: Sequence[str] | None = args.get("calendars")
    existing = await _existing(calendar, whole, names, with_details=args["include_details"])
    busy = [Slot(start, end) for start, end, _ in existing]
    coming = Slot(max(whole.start, now, key=lambda moment: moment.astimezone(UTC)), whole.end)
    free = find_gaps(busy, coming, timedelta(minutes=args["min_duration_minutes"]))
    return ok(
        {
            "date_range": _span(whole),
            "existing_events": [{**_span(Slot(start, end)), **fields} for start, end, fields in existing],
            "available_slots": [{**_span(slot), "duration_minutes": slot.minutes} for slot in free],
            "summary": _summary(len(existing), free),
        },
        spoken=_speak(free, coming, now),
    )


def _range(args: Args, now: datetime) -> Slot:
    start, end = parse_period(args["start_date"], now), parse_period(args["end_date"], now)
    for period, name in ((start, "start_date"), (end, "end_date")):
        if period is None:
            raise _refusal(f"I don't know when {args[name]} is.", FORMS)
    assert start is not None
    assert end is not None
    whole = Slot(start.start, end.end)
    length = whole.end.astimezone(UTC) - whole.start.astimezone(UTC)
    if length <= timedelta(0):
        raise _refusal("That range ends before it starts.", "end_date must be later than start_date.")
    # An hour more, for a month in which the clocks go back.
    if length > LONGEST + timedelta(hours=1):
        raise _refusal("I can look at most 31 days at a time.", "Ask for a shorter range, or for several.")
    if whole.end <= now:
        raise _refusal("That time is already over.", "Ask about a time that is still to come.")
    return whole


def _refusal(message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorType.VALIDATION, message, suggestion=suggestion)


Existing = tuple[datetime, datetime, dict[str, Any]]


async def _existing(
    calendar: Calendar, whole: Slot, names: Sequence[str] | None, *, with_details: bool
) -> list[Existing]:
    """Returns the busy times, with titles only for the user's own calendars, and only if they were asked for."""
    busy = [
        (each.start, each.end, {"status": "busy", "calendar": each.calendar, "title": None})
        for each in await calendar.busy(whole.start, whole.end, names)
    ]
    if not with_details:
        return busy
    own = {each.name for each in await calendar.calendars() if each.is_own}
    events = [
        (
            event.start,
            event.end,
            {"status": "busy", "calendar": event.calendar, "title": event.title, "attendees": len(event.attendees)},
        )
        for event in await calendar.events(whole.start, whole.end, names)
        if event.is_busy
    ]
    others = [each for each in busy if each[2]["calendar"] not in own]
    return sorted([*events, *others], key=lambda each: (each[0].astimezone(UTC), each[1].astimezone(UTC)))


def _span(slot: Slot) -> dict[str, str]:
    return {"start": slot.start.isoformat(timespec="seconds"), "end": slot.end.isoformat(timespec="seconds")}


def _summary(busy: int, free: Sequence[Slot]) -> str:
    minutes = sum(slot.minutes for slot in free)
    return f"{_count(busy, 'busy period')}, {_count(len(free), 'free slot')} ({minutes} minutes in all)"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _speak(free: Sequence[Slot], coming: Slot, now: datetime) -> str:
    today = now.date()
    if not free:
        return f"You have no free time {speak_span(coming.start, coming.end, today)}."
    if len(free) == 1 and (free[0].start, free[0].end) == (coming.start, coming.end):
        return f"Yes, you're free {speak_span(coming.start, coming.end, today)}."
    said, day = [], None
    for slot in free[:SLOTS_SAID]:
        if slot.start.date() == day and slot.end.date() == day:
            said.append(f"from {speak_time(slot.start)} to {speak_time(slot.end)}")
        else:
            said.append(speak_span(slot.start, slot.end, today))
        day = slot.start.date()
    more = len(free) - len(said)
    if more:
        said.append(f"{_count(more, 'more time')} after that")
    listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    return f"You're free {listed}."
