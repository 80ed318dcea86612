"""Deletes an event from the user's calendar, after the user has approved it."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final

from antiphon.tools.capabilities.calendar import Event
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import Prepared, ToolResult, ok
from antiphon.words.speech import speak_span

from .search import find_events

PAST: Final = timedelta(days=7)
AHEAD: Final = timedelta(days=92)
CANDIDATES: Final = 5


async def prepare(args: Args, context: Context) -> Prepared:
    """Finds the event, and asks about exactly that one."""
    today, event = await _find(args["event"], context)
    named = f"“{event.title}” {speak_span(event.start, event.end, today)}"
    if event.series is None:
        question = f"Delete {named}?"
    elif args["whole_series"]:
        question = f"Delete “{event.title}” with all its occurrences, not only {_when(event, today)}?"
    else:
        question = f"Delete {named}? The other occurrences stay."
    return Prepared({**args, "event": event.id}, question)


async def execute(args: Args, context: Context) -> ToolResult:
    today, event = await _find(args["event"], context)
    whole_series = args["whole_series"] and event.series is not None
    deleted = event.series if whole_series and event.series is not None else event.id
    await context.calendar.delete(deleted)
    what = f"“{event.title}” with all its occurrences" if whole_series else f"“{event.title}” {_when(event, today)}"
    return ok(
        {
            "deleted": deleted,
            "title": event.title,
            "start": event.start.isoformat(timespec="seconds"),
            "whole_series": whole_series,
        },
        spoken=f"Done. I've deleted {what}.",
    )


async def _find(words: str, context: Context) -> tuple[date, Event]:
    """Finds the one event that the words mean, and tells which day it is. Raises `ToolError`."""
    now: datetime = context.clock.now(context.session.zone).replace(microsecond=0)
    events = await context.calendar.events(now - PAST, now + AHEAD)
    found = find_events(words, events, now)
    if not found:
        raise ToolError(
            ErrorType.NOT_FOUND,
            "I can't find that in your calendar.",
            suggestion="List the events with calendar_list_events, and use the id of one of them.",
        )
    if len(found) > 1 and not _is_one_series(found):
        raise _ambiguous(found, now.date())
    return now.date(), found[0]


def _is_one_series(found: Sequence[Event]) -> bool:
    return found[0].series is not None and len({event.series for event in found}) == 1


def _ambiguous(found: Sequence[Event], today: date) -> ToolError:
    shown = found[:CANDIDATES]
    named = [f"“{event.title}” {_when(event, today)}" for event in shown]
    return ToolError(
        ErrorType.CONFLICT,
        f"I found several: {'; '.join(named)}. Which one do you mean?",
        suggestion="Ask the user which one, then call again with its id.",
        details={
            "candidates": [{"id": event.id, "title": event.title, "start": event.start.isoformat()} for event in shown]
        },
    )


def _when(event: Event, today: date) -> str:
    return speak_span(event.start, event.end, today)
