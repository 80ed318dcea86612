"""Tells today's date, here or in another place."""

import calendar
from typing import Any

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
    data: dict[str, Any] = {
        "date": today.isoformat(),
        "weekday": f"{today:%A}",
        "timezone": place.zone.key,
        "place": place.name,
    }
    there = "" if place is here else f" in {place.name}"
    match args.get("about"):
        case "week":
            data["week"] = today.isocalendar().week
            return ok(data, spoken=f"It's week {data['week']}{there}.")
        case "month":
            return ok(data, spoken=f"It's {today:%B}{there}.")
        case "year":
            return ok(data, spoken=f"It's {today.year}{there}.")
        case "leap_year":
            return _leap_year(args.get("year", today.year), data)
    return ok(data, spoken=f"In {place.name} it's {words}." if there else f"Today is {words}.")


def _leap_year(year: int, data: dict[str, Any]) -> ToolResult:
    # The longest wait is eight years, as from 1896 to 1904.
    coming = next(each for each in range(year + 1, year + 9) if calendar.isleap(each))
    data |= {"leap_year": calendar.isleap(year), "next_leap_year": coming}
    if data["leap_year"]:
        return ok(data, spoken=f"Yes, {year} is a leap year.")
    return ok(data, spoken=f"No, {year} isn't a leap year. The next one is {coming}.")
