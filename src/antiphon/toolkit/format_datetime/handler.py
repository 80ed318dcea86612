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
    here = Place(speak_zone(context.session.zone), context.session.zone)
    now = context.clock.now(here.zone)
    words, source = args["datetime"], _place(args, "from_timezone", here)
    place = _place(args, "timezone", here)
    if "from_timezone" not in args and parse_when(words, now) is None:
        words, source = _split_place(words, now) or (words, here)
    when = parse_when(words, now if source is None else now.astimezone(source.zone))
    style = Style(args["style"])
    if when is None:
        return _refuse(
            f"I don't know when {args['datetime']} is.",
            'Give it as "2026-03-04T18:00", "March 4th at 6 pm" or "tomorrow at noon".',
        )
    if source is None or place is None:
        return _refuse(
            f"I don't know one time zone for {args['timezone' if place is None else 'from_timezone']}.",
            'Name a large city, such as "Tokyo", or an IANA zone, such as "Asia/Tokyo".',
        )
    base = when if "timezone" in args else now
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
    told = _speak(when, now.date())
    if style is Style.TIME and isinstance(when, datetime) and isinstance(base, datetime):
        told = speak_time(when) + _other_day(when, base, now)
    return ok(
        {"text": _write(when, style, now.date()), "iso": _iso(when), "timezone": place.zone.key},
        spoken=f"That's {told}{where}.",
    )


def _place(args: Args, key: str, here: Place) -> Place | None:
    return find_place(args[key]) if key in args else here


def _split_place(words: str, now: datetime) -> tuple[str, Place] | None:
    """Splits "3 pm London time" and "3 pm in London" into the time and the place."""
    said = words.split()
    for count in range(len(said) - 1, 0, -1):
        head, tail = " ".join(said[:count]), " ".join(said[count:])
        if parse_when(head, now) is not None and (place := find_place(tail)) is not None:
            return head, place
    return None


def _other_day(when: datetime, base: datetime, now: datetime) -> str:
    """Returns on which day it is, if it is not the day of the time that was asked about."""
    match (when.date() - base.date()).days:
        case 0:
            return ""
        case 1:
            return " tomorrow" if base is now else " the next day"
        case -1:
            return " yesterday" if base is now else " the day before"
        case _:
            return f" on {speak_date(when.date(), now.date())}"


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
