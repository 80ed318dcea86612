"""Answers as Open-Meteo, SearXNG, DuckDuckGo's instant answers and Wikipedia do, on one local server.

The shapes are those of their documentation; fields that nobody reads are there too, as they are on the wire.
"""

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.fakes.local_http import Received, Reply, Service

PLACES: list[dict[str, Any]] = [
    {"name": "Oslo", "admin1": "Oslo County", "country": "Norway", "country_code": "NO", "at": (59.91273, 10.74609)},
    {"name": "Paris", "admin1": "Île-de-France", "country": "France", "country_code": "FR", "at": (48.85341, 2.3488)},
    {"name": "Paris", "admin1": "Texas", "country": "United States", "country_code": "US", "at": (33.66094, -95.55551)},
    {"name": "Portland", "admin1": "Oregon", "country": "United States", "country_code": "US", "at": (45.52, -122.67)},
    {"name": "Portland", "admin1": "Maine", "country": "United States", "country_code": "US", "at": (43.65, -70.25)},
    {"name": "Auckland", "admin1": "Auckland", "country": "New Zealand", "country_code": "NZ", "at": (-36.85, 174.76)},
    {"name": "Nowhere Island", "at": (1.5, 2.5)},
]
TODAY = date(2026, 1, 1)
"""A Thursday."""


@dataclass
class PublicWeb(Service):
    codes: list[int] = field(default_factory=lambda: [63, 61, 3, 0, 71, 95, 2])
    chances: list[int | None] = field(default_factory=lambda: [80, 70, 30, 0, 90, 60, 10])
    current: dict[str, Any] = field(default_factory=dict)
    instant: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    articles: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, request: Received) -> Reply:
        match request.path:
            case "/v1/search":
                return Reply(self.geocode(request.query))
            case "/v1/forecast":
                return Reply(self.forecast(request.query))
            case "/search" if request.query.get("format") == "json":
                return Reply(
                    {"query": request.query["q"], "number_of_results": 0, "results": self.results, "answers": []}
                )
            case "/":
                return Reply(self.instant_answer(), headers={"content-type": "application/x-javascript"})
            case "/w/rest.php/v1/search/page":
                return Reply({"pages": self.pages(int(request.query["limit"]))})
            case path if path.startswith("/api/rest_v1/page/summary/"):
                return Reply(self.articles[path.rpartition("/")[2]])
        return Reply({"error": "nothing here"}, status=404)

    def geocode(self, query: dict[str, str] | Any) -> dict[str, Any]:
        found = [
            {
                "id": 1000 + number,
                "name": place["name"],
                "latitude": place["at"][0],
                "longitude": place["at"][1],
                "elevation": 26.0,
                "feature_code": "PPLC",
                "timezone": "Europe/Oslo",
                "population": 580_000,
                **{key: value for key, value in place.items() if key not in ("name", "at")},
            }
            for number, place in enumerate(PLACES)
            if place["name"].casefold() == query["name"].casefold()
        ]
        return {"results": found, "generationtime_ms": 0.5} if found else {"generationtime_ms": 0.5}

    def forecast(self, query: Any) -> dict[str, Any]:
        imperial = query.get("temperature_unit") == "fahrenheit"
        days = int(query["forecast_days"])
        lows, highs = [7.6, -3.2, 0.4, 2.0, -8.0, 1.0, 3.3], [12.4, 1.1, 5.5, 9.0, -1.4, 6.0, 8.0]
        if imperial:
            lows, highs = ([celsius * 1.8 + 32 for celsius in each] for each in (lows, highs))
        current = {
            "time": "2026-01-01T13:00",
            "interval": 900,
            "temperature_2m": 53.2 if imperial else 11.8,
            "apparent_temperature": 50.0 if imperial else 9.9,
            "relative_humidity_2m": 71,
            "wind_speed_10m": 5.8 if imperial else 9.4,
            "weather_code": 63,
            "is_day": 1,
            **self.current,
        }
        return {
            "latitude": float(query["latitude"]),
            "longitude": float(query["longitude"]),
            "generationtime_ms": 0.2,
            "utc_offset_seconds": 3600,
            "timezone": "Europe/Oslo",
            "timezone_abbreviation": "GMT+1",
            "elevation": 14.0,
            "current_units": {"time": "iso8601", "temperature_2m": "°F" if imperial else "°C"},
            "current": current,
            "daily_units": {"time": "iso8601", "weather_code": "wmo code"},
            "daily": {
                "time": [(TODAY + timedelta(days=n)).isoformat() for n in range(days)],
                "weather_code": self.codes[:days],
                "temperature_2m_max": highs[:days],
                "temperature_2m_min": lows[:days],
                "precipitation_sum": [4.1, 2.0, 0.1, 0.0, 6.0, 3.0, 0.0][:days],
                "precipitation_probability_max": self.chances[:days],
                "wind_speed_10m_max": [21.3, 30.0, 12.0, 8.0, 40.0, 55.0, 10.0][:days],
            },
        }

    def instant_answer(self) -> dict[str, Any]:
        empty = dict.fromkeys(
            ["Abstract", "AbstractSource", "AbstractText", "AbstractURL", "Answer", "AnswerType", "Definition"], ""
        )
        return {
            **empty,
            "DefinitionSource": "",
            "DefinitionURL": "",
            "Heading": "",
            "Type": "",
            "Results": [],
            **self.instant,
        }

    def pages(self, limit: int) -> list[dict[str, Any]]:
        return [
            {"id": number, "key": key, "title": article["title"], "excerpt": "<span>x</span>", "thumbnail": None}
            for number, (key, article) in enumerate(self.articles.items())
        ][:limit]


ADA: dict[str, Any] = {
    "type": "standard",
    "title": "Ada Lovelace",
    "extract": (
        "Augusta Ada King, Countess of Lovelace was an English mathematician and writer. She is known for her work on "
        "Babbage's Analytical Engine. She was the first to see that it could do more than arithmetic."
    ),
    "content_urls": {
        "desktop": {"page": "https://en.wikipedia.org/wiki/Ada_Lovelace", "revisions": "…"},
        "mobile": {"page": "https://en.m.wikipedia.org/wiki/Ada_Lovelace"},
    },
    "lang": "en",
    "description": "English mathematician (1815–1852)",
}
