"""Tells the time of day, here or in another place."""

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.speech import speak_time
from antiphon.words.zones import Place, find_place, speak_zone


async def execute(args: Args, context: Context) -> ToolResult:
    here = Place(speak_zone(context.session.zone), context.session.zone)
    place = find_place(args["timezone"]) if "timezone" in args else here
    if place is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know one time zone for {args['timezone']}.",
            suggestion='Name a large city, such as "Tokyo", or an IANA zone, such as "Asia/Tokyo".',
        )
    now = context.clock.now(place.zone)
    data = {
        "iso": now.isoformat(timespec="seconds"),
        "time": f"{now:%H:%M}",
        "timezone": place.zone.key,
        "place": place.name,
    }
    if place is here:
        return ok(data, spoken=f"It's {speak_time(now)}.")
    # Far away it may be tomorrow already.
    day = "" if now.date() == context.clock.now(here.zone).date() else f" on {now:%A}"
    return ok(data, spoken=f"It's {speak_time(now)}{day} in {place.name}.")
