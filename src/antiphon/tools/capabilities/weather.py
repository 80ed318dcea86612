"""The weather of places."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

from antiphon.tools.result import Citation

SOURCE: Final = Citation("open-meteo", "Weather data by Open-Meteo.com", "https://open-meteo.com/")
LIKELY: Final = 50
"""The chance of rain, in percent, from which it is likely."""


class Units(StrEnum):
    METRIC = "metric"
    """Degrees Celsius, kilometres per hour, millimetres."""
    IMPERIAL = "imperial"
    """Degrees Fahrenheit, miles per hour, inches."""


class Sky(Struct, frozen=True):
    """The state of the sky, in words for two kinds of sentences."""

    now: str
    """Completes "it is …": "raining"."""
    expected: str
    """Completes "expect …": "rain"."""


class Place(Struct, frozen=True):
    name: str
    region: str
    country: str
    latitude: float
    longitude: float


class CurrentWeather(Struct, frozen=True):
    time: datetime
    """The local time of the place, without a zone."""
    temperature: float
    feels_like: float
    humidity_percent: int
    wind_speed: float
    sky: Sky


class DayWeather(Struct, frozen=True):
    day: date
    """By the calendar of the place."""
    low: float
    high: float
    rain_chance_percent: int | None
    """None if the weather models of the place do not tell."""
    precipitation: float
    wind_speed: float
    """The highest of the day."""
    sky: Sky
    wet: bool
    """Whether the sky brings rain or snow."""

    @property
    def rain_is_likely(self) -> bool:
        return self.wet if self.rain_chance_percent is None else self.rain_chance_percent >= LIKELY

    def to_data(self) -> dict[str, Any]:
        """Returns what models and clients are told of the day."""
        return {
            "date": self.day.isoformat(),
            "weekday": f"{self.day:%A}",
            "low": self.low,
            "high": self.high,
            "rain_chance_percent": self.rain_chance_percent,
            "precipitation": self.precipitation,
            "wind_speed": self.wind_speed,
            "sky": self.sky.expected,
        }


class WeatherReport(Struct, frozen=True):
    place: Place
    units: Units
    now: CurrentWeather
    days: tuple[DayWeather, ...]
    """A week, beginning with today at the place."""

    def to_data(self) -> dict[str, Any]:
        """Returns what models and clients are told of the place, without the weather."""
        place = self.place
        return {
            "place": place.name,
            "region": place.region,
            "country": place.country,
            "units": str(self.units),
        }


class Weather(Protocol):
    """The weather of places."""

    async def report(self, location: str | None) -> WeatherReport:
        """Reports on a place by its name; without one, on the place in the settings.

        Raises `ToolError`: VALIDATION if there is no such setting, NOT_FOUND for an unknown place, or one of the web.
        """
        ...
