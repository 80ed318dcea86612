"""Tells today's date, here or in another place."""

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.speech import ordinal
from antiphon.words.zones import Place, find_place, speak_zone


async def execute(args: Args, context: Context) -> ToolResult:
    here = Place(speak_zone(context.session.zone), context.session.zone)
    place = find_place(args["timezone"]) if "timezone" in args else here
    if place is None:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know one time zone for {args['timezone']}.",
            suggestion='Name a large city, such as "Sydney", or an IANA zone, such as "Australia/Sydney".',
        )
    today = context.clock.now(place.zone).date()
    # The year is included because the user may be filling in a form.
    words = f"{today:%A}, {today:%B} {ordinal(today.day)}, {today.year}"
    data = {
        "date": today.isoformat(),
        "weekday": f"{today:%A}",
        "timezone": place.zone.key,
        "place": place.name,
    }
    return ok(data, spoken=f"Today is {words}." if place is here else f"In {place.name} it's {words}.")
