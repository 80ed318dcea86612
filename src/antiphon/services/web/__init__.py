"""What tools use of the web: any public address, the weather, searches and short answers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from antiphon.clock import Clock
from antiphon.config import Weather, Web
from antiphon.tools.capabilities.weather import Units
from antiphon.tools.capabilities.web import QuickAnswer, SearchResult

if TYPE_CHECKING:
    from antiphon.services.http.cache import Cache
    from antiphon.services.http.network import Network
    from antiphon.services.http.sites import Site
    from antiphon.services.web.answers import QuickAnswers
    from antiphon.services.web.fetch import PublicFetch
    from antiphon.services.web.search import Engine
    from antiphon.services.web.weather import OpenMeteo

SEARCH_S: Final = 10 * 60.0
ANSWER_S: Final = 60 * 60.0
"""How long the results of a search and a short answer are kept."""
KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class WebServices:
    fetch: "PublicFetch"
    weather: "OpenMeteo"
    web: "WebLookup"


class WebLookup:
    """Implements `Web`."""

    def __init__(
        self,
        engine: "Engine",
        answers: "QuickAnswers",
        searches: "Cache[Sequence[SearchResult]]",
        answered: "Cache[QuickAnswer | None]",
    ) -> None:
        self._engine = engine
        self._answers = answers
        self._searches = searches
        self._answered = answered

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        key = _key(query)
        return (await self._searches.get(key, SEARCH_S, lambda: self._engine.search(key)))[:limit]

    async def answer(self, query: str) -> QuickAnswer | None:
        key = _key(query)
        return await self._answered.get(key, ANSWER_S, lambda: self._answers.answer(key))

    async def aclose(self) -> None:
        await self._searches.aclose()
        await self._answered.aclose()


@asynccontextmanager
async def open_web(
    web: Web, weather: Weather, clock: Clock, network: "Network | None" = None
) -> AsyncIterator[WebServices]:
    """Opens all of it. Nothing is connected before a tool asks."""
    # Imported here, so that commands that use no tool start without the HTTP client.
    from antiphon.services.http.cache import Cache
    from antiphon.services.http.client import WebClient
    from antiphon.services.http.network import Network, authority
    from antiphon.services.web.answers import QuickAnswers
    from antiphon.services.web.fetch import PublicFetch
    from antiphon.services.web.places import Places
    from antiphon.services.web.search import DuckDuckGo, SearXNG
    from antiphon.services.web.weather import OpenMeteo

    network = network or Network()
    async with AsyncExitStack() as stack:

        def client(trusted: str | None = None) -> WebClient:
            made = WebClient(network, frozenset() if trusted is None else frozenset({authority(trusted)}))
            stack.push_async_callback(made.aclose)
            return made

        public = client()

        def site(name: str, url: str, default: str) -> "Site":
            from antiphon.services.http.sites import Site

            # What the operator has set may be in a private network; for the public services that would be a trap.
            is_own = url != default
            return Site(name, url, client(url) if is_own else public, is_own=is_own)

        usual_web, usual_weather = Web(), Weather()
        places = Places(site("the weather service", weather.geocoding_url, usual_weather.geocoding_url), clock)
        forecast = site("the weather service", weather.forecast_url, usual_weather.forecast_url)
        engine: Engine = SearXNG(site("your search engine", web.searxng, "")) if web.searxng else DuckDuckGo()
        answers = QuickAnswers(
            site("DuckDuckGo", web.duckduckgo, usual_web.duckduckgo),
            site("Wikipedia", web.wikipedia, usual_web.wikipedia),
        )
        services = WebServices(
            fetch=PublicFetch(public, clock),
            weather=OpenMeteo(places, forecast, clock, location=weather.location, units=Units(weather.units)),
            web=WebLookup(engine, answers, Cache(clock, max_size=KEPT), Cache(clock, max_size=KEPT)),
        )
        for service in (services.fetch, services.weather, services.web):
            stack.push_async_callback(service.aclose)
        yield services


async def search_once(searxng: str, clock: Clock) -> None:
    """Searches for a word, to see whether a SearXNG works. Raises `ToolError`."""
    async with open_web(Web(searxng=searxng), Weather(), clock) as services:
        await services.web.search("antiphon", 1)


def _key(query: str) -> str:
    return " ".join(query.split())
