"""The weather service against a server that answers as Open-Meteo does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import pytest

from antiphon.clock import SystemClock
from antiphon.config import Weather, Web
from antiphon.services.web import open_web
from antiphon.services.web.sky import describe
from antiphon.services.web.weather import OpenMeteo
from antiphon.tools.capabilities.weather import Units
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.local_http import Reply, serving, without_tls
from tests.fakes.public_web import PublicWeb

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def open_weather(**settings: Any) -> AsyncIterator[tuple[OpenMeteo, PublicWeb]]:
    async with serving(PublicWeb()) as web:
        where = Weather(forecast_url=web.server.url, geocoding_url=web.server.url, **settings)
        async with open_web(Web(), where, SystemClock(), without_tls()) as services:
            yield services.weather, web


@pytest.fixture
async def weather() -> AsyncIterator[tuple[OpenMeteo, PublicWeb]]:
    async with open_weather() as made:
        yield made


Opened = tuple[OpenMeteo, PublicWeb]


async def test_current_weather_and_a_week_come_in_one_report(weather: Opened) -> None:
    report = await weather[0].report("Oslo")
    assert (report.place.name, report.place.country, report.units) == ("Oslo", "Norway", Units.METRIC)
    assert (report.now.temperature, report.now.sky.now) == (11.8, "raining")
    assert [day.day for day in report.days][:2] == [date(2026, 1, 1), date(2026, 1, 2)]
    assert len(report.days) == 7


async def test_the_service_is_asked_for_the_calendar_of_the_place(weather: Opened) -> None:
    await weather[0].report("Auckland")
    assert weather[1].server.received[-1].query["timezone"] == "auto"


@pytest.mark.parametrize(
    ("said", "country", "region"),
    [
        ("Paris", "France", "Île-de-France"),
        ("Paris, Texas", "United States", "Texas"),
        ("paris texas", "United States", "Texas"),
        ("Paris, France", "France", "Île-de-France"),
        ("Portland, OR", "United States", "Oregon"),
        ("portland maine", "United States", "Maine"),
        ("Portland, Maine, USA", "United States", "Maine"),
        ("Auckland, NZ", "New Zealand", "Auckland"),
        ("  OSLO  ", "Norway", "Oslo County"),
        ("Nowhere Island", "", ""),
    ],
)
async def test_places_are_found_as_people_say_them(weather: Opened, said: str, country: str, region: str) -> None:
    place = (await weather[0].report(said)).place
    assert (place.country, place.region) == (country, region)


@pytest.mark.parametrize("said", ["Atlantis", "Paris, Germany", "Paris, Texas, Mars", "x"])
async def test_an_unknown_place_is_not_found(weather: Opened, said: str) -> None:
    with pytest.raises(ToolError, match="I don't know a place called") as error:
        await weather[0].report(said)
    assert error.value.type is ErrorType.NOT_FOUND


async def test_without_a_place_the_one_of_the_settings_is_meant() -> None:
    async with open_weather(location="Portland, Maine") as (weather, _):
        assert (await weather.report(None)).place.region == "Maine"


async def test_without_any_place_the_user_is_asked(weather: Opened) -> None:
    with pytest.raises(ToolError, match="Which place") as error:
        await weather[0].report(None)
    assert error.value.type is ErrorType.VALIDATION


async def test_imperial_units_are_asked_for() -> None:
    async with open_weather(units="imperial") as (weather, web):
        report = await weather.report("Oslo")
        assert report.now.temperature == 53.2
        query = web.server.received[-1].query
        assert (query["wind_speed_unit"], query["precipitation_unit"]) == ("mph", "inch")


async def test_a_second_question_about_a_place_asks_nobody(weather: Opened) -> None:
    await asyncio.gather(*(weather[0].report("Oslo") for _ in range(3)))
    await weather[0].report("oslo")
    assert sorted(weather[1].server.paths) == ["/v1/forecast", "/v1/search"]


async def test_days_without_a_forecast_are_left_out(weather: Opened) -> None:
    weather[1].codes = [63, 61, 3, None, None, None, None]  # type: ignore[list-item]
    weather[1].chances = [None] * 7
    report = await weather[0].report("Oslo")
    assert len(report.days) == 3
    assert report.days[0].rain_chance_percent is None


@pytest.mark.parametrize("current", [{"time": "soon"}, {"temperature_2m": None}, {"weather_code": "rain"}])
async def test_a_report_that_makes_no_sense_is_transient(weather: Opened, current: dict[str, Any]) -> None:
    weather[1].current = current
    with pytest.raises(ToolError, match="can't read") as error:
        await weather[0].report("Oslo")
    assert error.value.type is ErrorType.TRANSIENT


async def test_a_list_of_another_length_is_transient(weather: Opened) -> None:
    weather[1].codes = [1, 2]
    with pytest.raises(ToolError, match="can't read"):
        await weather[0].report("Oslo")


async def test_a_report_without_days_is_transient(weather: Opened) -> None:
    forecast = weather[1].forecast({"forecast_days": "0", "latitude": "1", "longitude": "1"})
    weather[1].replies["/v1/forecast"] = Reply(forecast)
    with pytest.raises(ToolError, match="can't read"):
        await weather[0].report("Oslo")


@pytest.mark.parametrize("code", [0, 1, 2, 3, 45, 48, *range(51, 58, 2), 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77])
def test_every_code_of_open_meteo_has_words(code: int) -> None:
    assert describe(code).now != "hard to tell"


def test_a_clear_night_is_not_sunny() -> None:
    assert describe(0, is_day=False).now == "clear"
    assert describe(0).now == "sunny"


def test_an_unknown_code_is_no_failure() -> None:
    assert describe(42).expected == "mixed weather"
