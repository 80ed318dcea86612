"""Tells the time of day, here or in other places, or how far apart the clocks of two places are."""

from datetime import datetime
from typing import Any, Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ToolResult, ok
from antiphon.words.reported import join
from antiphon.words.speech import speak_duration, speak_time
from antiphon.words.zones import Place, find_places, speak_zone

HERE: Final = frozenset({"here", "me", "us", "home", "my time", "our time"})


async def execute(args: Args, context: Context) -> ToolResult:
    zone = context.session.zone
    here = Place(speak_zone(zone), zone)
    now = context.clock.now(zone)
    places = _find(args["timezone"], here) if "timezone" in args else [here]
    if "compared_with" in args:
        [other] = _find(args["compared_with"], here, most=1)
        return _compare(places[0], other, here, now)
    clocks = [now.astimezone(place.zone) for place in places]
    first, *others = [_data(place, clock) for place, clock in zip(places, clocks, strict=True)]
    data = {**first, "others": others} if others else first
    if places == [here]:
        return ok(data, spoken=f"It's {speak_time(now)}.")
    # Far away it may be tomorrow already.
    told = [
        f"{speak_time(clock)}{'' if clock.date() == now.date() else f' on {clock:%A}'} in {place.name}"
        for place, clock in zip(places, clocks, strict=True)
    ]
    return ok(data, spoken=f"It's {join(told)}.")


def _find(names: str, here: Place, most: int = 5) -> list[Place]:
    places = [here] if names.strip().casefold() in HERE else find_places(names)
    if not 0 < len(places) <= most:
        raise ToolError(
            ErrorType.VALIDATION,
            f"I don't know one time zone for {names}.",
            suggestion='Name a large city, such as "Tokyo", or an IANA zone, such as "Asia/Tokyo".',
        )
    return places


def _compare(place: Place, other: Place, here: Place, now: datetime) -> ToolResult:
    clock, other_clock = now.astimezone(place.zone), now.astimezone(other.zone)
    ahead = (clock.utcoffset() or now - now) - (other_clock.utcoffset() or now - now)
    minutes = round(ahead.total_seconds() / 60)
    data = {**_data(place, clock), "minutes_ahead": minutes, "others": [_data(other, other_clock)]}
    than = "you" if other is here else other.name
    if minutes == 0:
        return ok(data, spoken=f"{place.name} has the same time as {than}.")
    way = f"ahead of {than}" if minutes > 0 else f"behind {than}"
    return ok(data, spoken=f"{place.name} is {speak_duration(ahead)} {way}.")


def _data(place: Place, clock: datetime) -> dict[str, Any]:
    return {
        "iso": clock.isoformat(timespec="seconds"),
        "time": f"{clock:%H:%M}",
        "timezone": place.zone.key,
        "place": place.name,
    }
