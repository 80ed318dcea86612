"""The capability `weather`, by Open-Meteo, or a server of one's own with the same API."""

from datetime import date, datetime
from typing import Final

from msgspec import Struct

from antiphon.clock import Clock
from antiphon.services.http.cache import Cache
from antiphon.services.http.failures import broken
from antiphon.services.http.sites import Site
from antiphon.services.web.places import Places
from antiphon.services.web.sky import describe, is_wet
from antiphon.tools.capabilities.weather import CurrentWeather, DayWeather, Place, Units, WeatherReport
from antiphon.tools.errors import ErrorType, ToolError

KEPT: Final = 256
FRESH_S: Final = 10 * 60.0
"""Open-Meteo computes current weather every 15 minutes."""
DAYS: Final = 7

_CURRENT: Final = "temperature_2m,apparent_temperature,relative_humidity_2m,wind_speed_10m,weather_code,is_day"
_DAILY: Final = (
    "weather_code,temperature_2m_max,temperature_2m_min,"
    "precipitation_sum,precipitation_probability_max,wind_speed_10m_max"
)
_UNITS: Final = {
    Units.METRIC: {},
    Units.IMPERIAL: {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph", "precipitation_unit": "inch"},
}


class _Current(Struct):
    time: str
    temperature_2m: float
    apparent_temperature: float
    relative_humidity_2m: float
    wind_speed_10m: float
    weather_code: int
    is_day: int


class _Daily(Struct):
    time: list[str]
    weather_code: list[int | None]
    temperature_2m_max: list[float | None]
    temperature_2m_min: list[float | None]
    precipitation_sum: list[float | None]
    precipitation_probability_max: list[float | None]
    wind_speed_10m_max: list[float | None]


class _Forecast(Struct):
    current: _Current
    daily: _Daily


class OpenMeteo:
    """Implements `Weather`."""

    def __init__(self, places: Places, site: Site, clock: Clock, *, location: str, units: Units) -> None:
        self._places = places
        self._site = site
        self._location = location
        self._units = units
        self._cache: Cache[WeatherReport] = Cache(clock, max_size=KEPT)

    async def report(self, location: str | None) -> WeatherReport:
        wanted = (location or "").strip() or self._location
        if not wanted:
            raise ToolError(
                ErrorType.VALIDATION,
                "Which place do you mean? I don't know where you are.",
                suggestion="Ask the user for a city. The operator can set a default with weather.location.",
            )
        place = await self._places.find(wanted)
        return await self._cache.get((place.latitude, place.longitude), FRESH_S, lambda: self._load(place))

    async def aclose(self) -> None:
        await self._places.aclose()
        await self._cache.aclose()

    async def _load(self, place: Place) -> WeatherReport:
        params: dict[str, str | int] = {
            "latitude": f"{place.latitude:.4f}",
            "longitude": f"{place.longitude:.4f}",
            "current": _CURRENT,
            "daily": _DAILY,
            # The days of the place, wherever the user and the server are.
            "timezone": "auto",
            "forecast_days": DAYS,
            **_UNITS[self._units],
        }
        forecast = await self._site.get_json("/v1/forecast", params, _Forecast)
        try:
            days = tuple(_days(forecast.daily))
            now = _now(forecast.current)
        except ValueError as error:
            raise broken(self._site.name) from error
        return WeatherReport(place, self._units, now, days)


def _now(current: _Current) -> CurrentWeather:
    return CurrentWeather(
        time=datetime.fromisoformat(current.time),
        temperature=current.temperature_2m,
        feels_like=current.apparent_temperature,
        humidity_percent=round(current.relative_humidity_2m),
        wind_speed=current.wind_speed_10m,
        sky=describe(current.weather_code, is_day=bool(current.is_day)),
    )


def _days(daily: _Daily) -> list[DayWeather]:
    """Leaves out days without temperatures, which a model that ends early does not have. Raises ValueError."""
    columns = zip(
        daily.time,
        daily.weather_code,
        daily.temperature_2m_min,
        daily.temperature_2m_max,
        daily.precipitation_probability_max,
        daily.precipitation_sum,
        daily.wind_speed_10m_max,
        strict=True,
    )
    days = [
        DayWeather(
            day=date.fromisoformat(time),
            low=low,
            high=high,
            rain_chance_percent=None if chance is None else round(chance),
            precipitation=amount or 0.0,
            wind_speed=wind or 0.0,
            sky=describe(code),
            wet=is_wet(code),
        )
        for time, code, low, high, chance, amount, wind in columns
        if code is not None and low is not None and high is not None
    ]
    if not days:
        raise ValueError("no day has a forecast")
    return days
