"""Writes a date and time in a chosen style."""

from datetime import date, datetime
from enum import StrEnum

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dates import parse_when
from antiphon.words.speech import speak_date, speak_time
from antiphon.words.zones import Place, find_place, speak_zone


class Style(StrEnum):
    SHORT = "short"
    LONG = "long"
    DATE = "date"
    TIME = "time"
    ISO = "iso"
    SPOKEN = "spoken"


async def execute(args: Args, context: Context) -> ToolResult:
    here = context.session.zone
    today = context.clock.now(here).date()
    when = parse_when(args["datetime"], context.clock.now(here))
    place = find_place(args["timezone"]) if "timezone" in args else Place(speak_zone(here), here)
    style = Style(args["style"])
    if when is None:
        return _refuse(
            f"I don't know when {args['datetime']} is.",
            'Give it as "2026-03-04T18:00", "March 4th at 6 pm" or "tomorrow at noon".',
        )
    if place is None:
        return _refuse(
            f"I don't know one time zone for {args['timezone']}.",
            'Name a large city, such as "Tokyo", or an IANA zone, such as "Asia/Tokyo".',
        )
    if isinstance(when, datetime):
        try:
            when = when.astimezone(place.zone)
        except OverflowError:
            return _refuse("That date is outside the calendar I know.", "It must lie between the years 1 and 9999.")
    elif style is Style.TIME:
        return _refuse(
            f"{args['datetime']} is a day without a time.",
            'Give the time too, as in "March 4th at 6 pm", or choose another style.',
        )
    # A day without a time is the same day everywhere.
    where = f" in {place.name}" if "timezone" in args and isinstance(when, datetime) else ""
    return ok(
        {"text": _write(when, style, today), "iso": _iso(when), "timezone": place.zone.key},
        spoken=f"That's {_speak(when, today)}{where}.",
    )


def _refuse(message: str, suggestion: str) -> ToolResult:
    return fail(ErrorType.VALIDATION, message, suggestion=suggestion)


def _write(when: datetime | date, style: Style, today: date) -> str:
    clock = f"{when.hour % 12 or 12}:{when:%M %p}" if isinstance(when, datetime) else ""
    match style:
        case Style.SHORT:
            return f"{when:%b} {when.day}, {when.year}" + (f", {clock}" if clock else "")
        case Style.LONG:
            return f"{when:%A}, {when:%B} {when.day}, {when.year}" + (f" at {clock}" if clock else "")
        case Style.DATE:
            return f"{when:%B} {when.day}, {when.year}"
        case Style.TIME:
            return clock
        case Style.ISO:
            return _iso(when)
        case Style.SPOKEN:
            return _speak(when, today)


def _iso(when: datetime | date) -> str:
    return when.isoformat(timespec="seconds") if isinstance(when, datetime) else when.isoformat()


def _speak(when: datetime | date, today: date) -> str:
    if isinstance(when, datetime):
        return f"{speak_date(when.date(), today)} at {speak_time(when)}"
    return speak_date(when, today)
