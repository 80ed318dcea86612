"""Finds places by what people say: "Oslo", "Paris, Texas", "portland oregon"."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from antiphon.clock import Clock
from antiphon.services.http.cache import Cache
from antiphon.services.http.sites import Params, Site
from antiphon.tools.capabilities.weather import Place
from antiphon.tools.errors import ErrorType, ToolError

KEPT: Final = 512
KEPT_S: Final = 24 * 60 * 60.0
CANDIDATES: Final = 20
MAX_NAME_CHARS: Final = 80

_STATES: Final = """
    AL Alabama, AK Alaska, AZ Arizona, AR Arkansas, CA California, CO Colorado, CT Connecticut, DE Delaware,
    FL Florida, GA Georgia, HI Hawaii, ID Idaho, IL Illinois, IN Indiana, IA Iowa, KS Kansas, KY Kentucky,
    LA Louisiana, ME Maine, MD Maryland, MA Massachusetts, MI Michigan, MN Minnesota, MS Mississippi,
    MO Missouri, MT Montana, NE Nebraska, NV Nevada, NH New Hampshire, NJ New Jersey, NM New Mexico,
    NY New York, NC North Carolina, ND North Dakota, OH Ohio, OK Oklahoma, OR Oregon, PA Pennsylvania,
    RI Rhode Island, SC South Carolina, SD South Dakota, TN Tennessee, TX Texas, UT Utah, VT Vermont,
    VA Virginia, WA Washington, WV West Virginia, WI Wisconsin, WY Wyoming, DC District of Columbia
"""
_OTHER_NAMES: Final = {
    **{short.casefold(): name.casefold() for short, _, name in (s.strip().partition(" ") for s in _STATES.split(","))},
    "uk": "united kingdom",
    "britain": "united kingdom",
    "great britain": "united kingdom",
    "usa": "united states",
    "us": "united states",
    "america": "united states",
    "holland": "netherlands",
}


class _Found(Struct):
    """A result of Open-Meteo's geocoding. What a place does not have is left out."""

    name: str
    latitude: float
    longitude: float
    country: str = ""
    country_code: str = ""
    admin1: str = ""
    admin2: str = ""

    def is_in(self, area: str) -> bool:
        wanted = area.casefold().removeprefix("the ").strip(" .")
        names = {name.casefold() for name in (self.country, self.country_code, self.admin1, self.admin2)}
        return wanted in names or _OTHER_NAMES.get(wanted) in names

    def place(self) -> Place:
        name, region, country = (
            " ".join(text.split())[:MAX_NAME_CHARS] for text in (self.name, self.admin1, self.country)
        )
        return Place(name, region, country, self.latitude, self.longitude)


class _Answer(Struct):
    results: list[_Found] = []
    """Left out if there are none."""


class Places:
    def __init__(self, site: Site, clock: Clock) -> None:
        self._site = site
        self._cache: Cache[list[_Found]] = Cache(clock, max_size=KEPT)

    async def find(self, said: str) -> Place:
        """Raises `ToolError` NOT_FOUND for a place that nobody knows."""
        for name, areas in _readings(" ".join(said.split())):
            found = [place for place in await self._search(name) if all(map(place.is_in, areas))]
            if found:
                return found[0].place()
        raise ToolError(
            ErrorType.NOT_FOUND,
            f"I don't know a place called {said}.",
            suggestion="Ask the user for a city, or for the country it is in.",
        )

    async def aclose(self) -> None:
        await self._cache.aclose()

    async def _search(self, name: str) -> list[_Found]:
        async def load() -> list[_Found]:
            params: Params = {"name": name, "count": CANDIDATES, "language": "en", "format": "json"}
            return (await self._site.get_json("/v1/search", params, _Answer)).results

        return await self._cache.get(name.casefold(), KEPT_S, load)


def _readings(said: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields the ways to read what was said, as a name and what it must be in: "paris texas" has both."""
    name, *areas = (part.strip() for part in said.split(","))
    yield name, [area for area in areas if area]
    if areas:
        return
    words = said.split()
    for last in (1, 2):
        if len(words) > last:
            yield " ".join(words[:-last]), [" ".join(words[-last:])]
