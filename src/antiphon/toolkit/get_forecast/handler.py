"""Tells the weather of the next days at a place."""

from collections.abc import Sequence
from typing import Final

from antiphon.tools.capabilities.weather import SOURCE, DayWeather
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.words.reported import join
from antiphon.words.speech import speak_near_day

SPOKEN_DAYS: Final = 3
"""More days than this are summed up."""


async def execute(args: Args, context: Context) -> ToolResult:
    report = await context.weather.report(args.get("location"))
    days, place = report.days[: args["days"]], report.place.name
    return ok(
        {**report.to_data(), "days": [day.to_data() for day in days]},
        spoken=_speak_each(days, place) if len(days) <= SPOKEN_DAYS else _sum_up(days, place),
        citations=[SOURCE],
    )


def _speak_each(days: Sequence[DayWeather], place: str) -> str:
    first, *rest = days
    told = f"In {place}, expect {first.sky.expected} and {_range(first)} degrees today"
    others = [f"{day.sky.expected} and {_range(day)} {speak_near_day(day.day, first.day)}" for day in rest]
    return f"{join([told, *others])}."


def _sum_up(days: Sequence[DayWeather], place: str) -> str:
    low, high = min(day.low for day in days), max(day.high for day in days)
    wet = [speak_near_day(day.day, days[0].day) for day in days if day.rain_is_likely]
    match wet:
        case []:
            rain = "It should stay dry."
        case _ if len(wet) == len(days):
            rain = "Rain is likely every day."
        case _:
            rain = f"Rain is likely {join(wet)}."
    return f"Over the next {len(days)} days in {place}, expect {round(low)} to {round(high)} degrees. {rain}"


def _range(day: DayWeather) -> str:
    return f"{round(day.low)} to {round(day.high)}"
