"""Creates an event in the user's calendar, after the user has approved it."""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from antiphon.tools.capabilities.calendar import UID_PREFIX, Event, EventDraft, LinkProvider
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import Prepared, ToolResult, ok
from antiphon.words.dates import parse_when
from antiphon.words.speech import speak_date, speak_span, speak_time
from antiphon.words.zones import speak_zone

ME: Final = "me"
DEFAULT_LENGTH: Final = timedelta(hours=1)
LONGEST: Final = timedelta(days=31)
CONFLICTS_SAID: Final = 3
FORMS: Final = 'Give it as "2026-01-13T14:00:00+01:00" or "tomorrow at 3 pm".'
PROVIDERS: Final = {LinkProvider.ZOOM: "Zoom", LinkProvider.JITSI: "Jitsi"}
_ADDRESS: Final = re.compile(r"[^@\s<>,;\"]{1,64}@(?:[\w-]+\.)+[\w-]{2,}")


async def prepare(args: Args, context: Context) -> Prepared:
    """Settles the times, looks for what they overlap, and puts it all into a question."""
    now = context.clock.now(context.session.zone).replace(microsecond=0)
    start, end = _times(args, now)
    people = _people(args["attendees"])
    overlapping = [event for event in await context.calendar.events(start, end) if event.is_busy]
    settled: dict[str, Any] = {**args, "start_time": start.isoformat(), "end_time": end.isoformat()}
    return Prepared(settled, _question(settled, people, overlapping, start=start, end=end, now=now))


async def execute(args: Args, context: Context) -> ToolResult:
    now = context.clock.now(context.session.zone).replace(microsecond=0)
    start, end = _times(args, now)
    people = _people(args["attendees"])
    draft = EventDraft(
        uid=_uid(context.session.user, args["title"].strip(), start, end, people),
        title=args["title"].strip(),
        start=start,
        end=end,
        attendees=tuple(people),
        description=args.get("description", ""),
    )
    created = await context.calendar.create(draft, with_link=_has_link(args, people))
    link = created.link
    return ok(
        {
            "id": created.id,
            "title": draft.title,
            "start": start.isoformat(),
            "end": end.isoformat(),
            "calendar": created.calendar,
            "attendees": people,
            "created": created.is_new,
            "link": None if link is None else link.url,
            "link_provider": None if link is None else str(link.provider),
        },
        spoken=_outcome(draft, now, is_new=created.is_new)
        + ("" if link is None else f" The {PROVIDERS[link.provider]} link is {link.url}"),
    )


def _times(args: Args, now: datetime) -> tuple[datetime, datetime]:
    start = _moment(args["start_time"], now)
    end = _moment(args["end_time"], now) if "end_time" in args else _later(start, DEFAULT_LENGTH)
    if start < now:
        raise _refusal(f"{_begin(speak_span(start, start, now.date()))} is already over.", "Choose a time to come.")
    if end.astimezone(UTC) <= start.astimezone(UTC):
        raise _refusal("That event would end before it starts.", "end_time must be later than start_time.")
    if end.astimezone(UTC) - start.astimezone(UTC) > LONGEST:
        raise _refusal("An event can last 31 days at most.", "Choose an earlier end_time.")
    return start, end


def _moment(words: str, now: datetime) -> datetime:
    when = parse_when(words, now)
    if when is None:
        raise _refusal(f"I don't know when {words} is.", FORMS)
    if not isinstance(when, datetime):
        raise _refusal(f"At what time? {_begin(words)} is a whole day.", f"Ask the user for the time of day. {FORMS}")
    return when.replace(microsecond=0)


def _later(moment: datetime, length: timedelta) -> datetime:
    """Adds real time: over a change of the clocks Python's own sum is an hour off."""
    return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)


def _people(attendees: Sequence[str]) -> list[str]:
    """Returns the addresses without repetitions, and without the user."""
    people = dict.fromkeys(each.strip() for each in attendees if each.strip().casefold() != ME)
    for each in people:
        if not _ADDRESS.fullmatch(each):
            raise _refusal(f"I need an e-mail address for {each}.", "Ask the user for the address; do not make one up.")
    return list(people)


def _refusal(message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorType.VALIDATION, message, suggestion=suggestion)


def _uid(user: str, title: str, start: datetime, end: datetime, people: Sequence[str]) -> str:
    """Makes the same uid from the same request, so that a second delivery cannot create a second event."""
    times = [moment.astimezone(UTC).isoformat() for moment in (start, end)]
    whole = json.dumps([user, title, *times, sorted(people)]).encode()
    return f"{UID_PREFIX}{hashlib.sha256(whole).hexdigest()[:32]}"


def _has_link(args: Args, people: Sequence[str]) -> bool:
    return bool(args["include_zoom_link"] and people)


def _question(
    args: Args, people: Sequence[str], overlapping: Sequence[Event], *, start: datetime, end: datetime, now: datetime
) -> str:
    near = (start.date() - now.date()).days in (0, 1)
    day = f", {speak_date(start.date(), now.date())}," if near else ""
    when = speak_span(start, end, now.date())
    # "tomorrow from 3 PM" gets its date too: this is the last chance to notice a wrong day.
    when = re.sub(r"^(today|tomorrow)", rf"\1{day}", when) if near else when
    with_whom = f" with {_listed(people)}" if people else ""
    link = ", with a video link" if _has_link(args, people) else ""
    zone = "" if start.tzinfo is None else f", {speak_zone(start.tzinfo)} time"  # type: ignore[arg-type]
    question = f"Put “{args['title'].strip()}”{with_whom} on your calendar {when}{zone}{link}?"
    return f"{_warning(overlapping)}{question}"


def _warning(overlapping: Sequence[Event]) -> str:
    if not overlapping:
        return ""
    named = [
        f"“{event.title}” ({'all day' if event.all_day else f'{speak_time(event.start)} to {speak_time(event.end)}'})"
        for event in overlapping[:CONFLICTS_SAID]
    ]
    more = len(overlapping) - len(named)
    if more:
        named.append(f"{more} more")
    return f"This overlaps {_listed(named)}. "


def _outcome(draft: EventDraft, now: datetime, *, is_new: bool) -> str:
    when = speak_span(draft.start, draft.end, now.date())
    if is_new:
        return f"Done. “{draft.title}” is on your calendar {when}."
    return f"“{draft.title}” was on your calendar already, {when}."


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _begin(words: str) -> str:
    return words[:1].upper() + words[1:]
