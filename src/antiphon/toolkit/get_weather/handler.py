"""Tells the weather at a place, now or on a day of the coming week."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from antiphon.tools.capabilities.weather import LIKELY, SOURCE, DayWeather, Units, WeatherReport
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.words.dates import parse_date
from antiphon.words.speech import speak_near_day

FELT: Final = {Units.METRIC: 4.0, Units.IMPERIAL: 7.0}
"""How far the felt temperature must be from the real one to be worth mentioning."""
POSSIBLE: Final = 20
"""The chance of rain, in percent, from which it is possible."""


async def execute(args: Args, context: Context) -> ToolResult:
    report = await context.weather.report(args.get("location"))
    data = report.to_data()
    about, said = args["about"], args.get("day", "")
    # Whether it rains today is more than whether it rains at this moment.
    if not said and about == "rain":
        said = "today"
    if not said:
        now = report.now
        data["now"] = {
            "time": now.time.isoformat(timespec="minutes"),
            "temperature": now.temperature,
            "feels_like": now.feels_like,
            "humidity_percent": now.humidity_percent,
            "wind_speed": now.wind_speed,
            "sky": now.sky.now,
        }
        return ok(data, spoken=_speak_now(report, about), citations=[SOURCE])
    first, last = report.days[0].day, report.days[-1].day
    wanted = _find_days(said, first)
    if not wanted:
        return fail(
            ErrorType.VALIDATION,
            f"I don't know which day you mean by {said}.",
            suggestion='Name a day of the coming week: "tomorrow", "friday", "this weekend" or a date.',
        )
    days = [day for day in report.days if day.day in wanted]
    if not days:
        message = "That day is over." if wanted[-1] < first else f"I only know the weather until {last:%A}."
        return fail(ErrorType.VALIDATION, message, suggestion=f"Days from {first} to {last} are known.")
    data["days"] = [day.to_data() for day in days]
    spoken = " ".join(_speak_day(report, day, about) for day in days)
    return ok(data, spoken=spoken, citations=[SOURCE])


def _find_days(said: str, today: date) -> Sequence[date]:
    """Returns the days that are meant; none if the words are not understood."""
    day = parse_date(said, today)
    if day is None:
        return ()
    if "weekend" in said.casefold() and day.weekday() == 5:
        return (day, day + timedelta(days=1))
    return (day,)


def _speak_now(report: WeatherReport, about: str) -> str:
    now, place = report.now, report.place.name
    felt = ""
    if abs(now.feels_like - now.temperature) >= FELT[report.units]:
        felt = f" It feels like {round(now.feels_like)}."
    match about:
        case "temperature":
            return f"It's {_degrees(now.temperature)} in {place}.{felt}"
        case "wind":
            return f"The wind in {place} blows at {_speed(now.wind_speed, report.units)}."
    return f"It's {_degrees(now.temperature)} and {now.sky.now} in {place}.{felt}"


def _speak_day(report: WeatherReport, day: DayWeather, about: str) -> str:
    place, when = report.place.name, speak_near_day(day.day, report.days[0].day)
    match about:
        case "temperature":
            return f"It will get up to {_degrees(day.high)} in {place} {when}, and down to {round(day.low)}."
        case "wind":
            return f"Expect wind of up to {_speed(day.wind_speed, report.units)} in {place} {when}."
        case "rain":
            return _speak_rain(day, place, when)
    chance = day.rain_chance_percent
    rain = f", with a {chance} percent chance of rain" if chance is not None and chance >= POSSIBLE else ""
    temperatures = f"{round(day.low)} to {_degrees(day.high)}"
    return f"Expect {day.sky.expected} and {temperatures} in {place} {when}{rain}."


def _speak_rain(day: DayWeather, place: str, when: str) -> str:
    what = "snow" if "snow" in day.sky.expected else "rain"
    chance = day.rain_chance_percent
    if chance is None:
        return f"{'Yes, expect' if day.wet else 'No, expect'} {day.sky.expected} in {place} {when}."
    if chance >= LIKELY:
        return f"Yes, it will probably {what} in {place} {when}. The chance is {chance} percent."
    if chance >= POSSIBLE:
        return f"It might {what} in {place} {when}. The chance is {chance} percent."
    return f"No, it will probably stay dry in {place} {when}."


def _degrees(temperature: float) -> str:
    number = round(temperature)
    return f"{number} degree{'' if abs(number) == 1 else 's'}"


def _speed(speed: float, units: Units) -> str:
    number = round(speed)
    unit = "kilometer" if units is Units.METRIC else "mile"
    return f"{number} {unit}{'' if number == 1 else 's'} an hour"
