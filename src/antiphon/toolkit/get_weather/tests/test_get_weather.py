from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.weather import CurrentWeather, DayWeather, Place, Sky, Units, WeatherReport
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult

handler = load_module(Path(__file__).parents[1])

OSLO = Place("Oslo", "Oslo County", "Norway", 59.9, 10.7)
TODAY = date(2026, 1, 1)
NOW = CurrentWeather(datetime.fromisoformat("2026-01-01T13:00"), 11.8, 9.9, 71, 9.4, Sky("raining", "rain"))


def make_day(number: int, **changes: Any) -> DayWeather:
    fields: dict[str, Any] = {
        "day": TODAY + timedelta(days=number),
        "low": 7.6,
        "high": 12.6,
        "rain_chance_percent": 70,
        "precipitation": 2.0,
        "wind_speed": 21.3,
        "sky": Sky("raining lightly", "light rain"),
        "wet": True,
    }
    return DayWeather(**{**fields, **changes})


@dataclass
class FakeWeather:
    now: CurrentWeather = NOW
    days: tuple[DayWeather, ...] = tuple(make_day(number) for number in range(7))
    units: Units = Units.METRIC
    asked: list[str | None] = field(default_factory=list)

    async def report(self, location: str | None) -> WeatherReport:
        self.asked.append(location)
        return WeatherReport(OSLO, self.units, self.now, self.days)


async def ask(weather: FakeWeather | None = None, **args: Any) -> ToolResult:
    context = make_context(granted={"weather": weather or FakeWeather()}, zone="Pacific/Auckland")
    result: ToolResult = await handler.execute({"about": "all", **args}, context)
    return result


async def test_the_weather_now_is_one_sentence() -> None:
    result = await ask(location="Oslo")
    assert result.spoken == "It's 12 degrees and raining in Oslo."
    assert result.data["now"]["temperature"] == 11.8


async def test_the_place_of_the_settings_is_meant_without_one() -> None:
    weather = FakeWeather()
    await ask(weather)
    assert weather.asked == [None]


@pytest.mark.parametrize(
    ("temperature", "felt", "units", "spoken"),
    [
        (1.2, 0.9, Units.METRIC, "It's 1 degree and raining in Oslo."),
        (-0.4, -1.0, Units.METRIC, "It's 0 degrees and raining in Oslo."),
        (-3.0, -9.0, Units.METRIC, "It's -3 degrees and raining in Oslo. It feels like -9."),
        (70.0, 75.0, Units.IMPERIAL, "It's 70 degrees and raining in Oslo."),
        (90.0, 99.0, Units.IMPERIAL, "It's 90 degrees and raining in Oslo. It feels like 99."),
    ],
)
async def test_what_it_feels_like_is_said_if_it_matters(
    temperature: float, felt: float, units: Units, spoken: str
) -> None:
    now = CurrentWeather(NOW.time, temperature, felt, 50, 3.0, NOW.sky)
    assert (await ask(FakeWeather(now=now, units=units))).spoken == spoken


@pytest.mark.parametrize(
    ("about", "day", "spoken"),
    [
        ("temperature", None, "It's 12 degrees in Oslo."),
        ("wind", None, "The wind in Oslo blows at 9 kilometers an hour."),
        (
            "all",
            "tomorrow",
            "Expect light rain and 8 to 13 degrees in Oslo tomorrow, with a 70 percent chance of rain.",
        ),
        ("temperature", "saturday", "It will get up to 13 degrees in Oslo on Saturday, and down to 8."),
        ("wind", "today", "Expect wind of up to 21 kilometers an hour in Oslo today."),
        ("rain", "tomorrow", "Yes, it will probably rain in Oslo tomorrow. The chance is 70 percent."),
        ("rain", None, "Yes, it will probably rain in Oslo today. The chance is 70 percent."),
        ("rain", "2026-01-03", "Yes, it will probably rain in Oslo on Saturday. The chance is 70 percent."),
    ],
)
async def test_each_question_has_its_answer(about: str, day: str | None, spoken: str) -> None:
    args: dict[str, Any] = {} if day is None else {"day": day}
    assert (await ask(about=about, **args)).spoken == spoken


@pytest.mark.parametrize(
    ("changes", "spoken"),
    [
        ({"rain_chance_percent": 30}, "It might rain in Oslo today. The chance is 30 percent."),
        ({"rain_chance_percent": 5}, "No, it will probably stay dry in Oslo today."),
        ({"rain_chance_percent": None}, "Yes, expect light rain in Oslo today."),
        (
            {"rain_chance_percent": None, "wet": False, "sky": Sky("sunny", "sunshine")},
            "No, expect sunshine in Oslo today.",
        ),
        ({"sky": Sky("snowing", "snow")}, "Yes, it will probably snow in Oslo today. The chance is 70 percent."),
    ],
)
async def test_rain_is_likely_possible_or_not(changes: dict[str, Any], spoken: str) -> None:
    assert (await ask(FakeWeather(days=(make_day(0, **changes),)), about="rain")).spoken == spoken


async def test_a_weekend_has_two_days() -> None:
    result = await ask(day="this weekend")
    assert [day["weekday"] for day in result.data["days"]] == ["Saturday", "Sunday"]


async def test_tomorrow_is_counted_where_the_weather_is() -> None:
    """The user is in Auckland, where it is already the second of January."""
    assert (await ask(day="tomorrow")).data["days"][0]["date"] == "2026-01-02"


@pytest.mark.parametrize(
    ("day", "told"),
    [
        ("whenever", "I don't know which day you mean by whenever."),
        ("february 30th", "I don't know which day you mean by february 30th."),
        ("yesterday", "That day is over."),
        ("in three weeks", "I only know the weather until Wednesday."),
    ],
)
async def test_a_day_without_a_forecast_is_refused(day: str, told: str) -> None:
    error = (await ask(day=day)).error
    assert error is not None
    assert (error.type, error.message) == (ErrorType.VALIDATION, told)
