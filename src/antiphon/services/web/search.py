"""Searches the web: by SearXNG if the operator has one, otherwise by DuckDuckGo through the package `ddgs`."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from antiphon.services.http.failures import slow, too_many, unreachable
from antiphon.services.http.sites import Params, Site
from antiphon.services.web.text import plain
from antiphon.tools.capabilities.web import SearchResult
from antiphon.tools.errors import ErrorType, ToolError

NAME: Final = "the search engine"
MAX_RESULTS: Final = 10
MAX_TITLE_CHARS: Final = 150
MAX_SNIPPET_CHARS: Final = 400
DDGS_TIMEOUT_S: Final = 5
DDGS_AT_ONCE: Final = 4
"""A search that nobody waits for any more still takes a thread until its time-out."""


class Engine(Protocol):
    async def search(self, query: str) -> Sequence[SearchResult]: ...


class _Result(Struct):
    url: str = ""
    title: str = ""
    content: str | None = None


class _Answer(Struct):
    results: list[_Result]


class SearXNG:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def search(self, query: str) -> Sequence[SearchResult]:
        params: Params = {"q": query, "format": "json", "language": "en", "safesearch": 1}
        try:
            answer = await self._site.get_json("/search", params, _Answer)
        except ToolError as error:
            if error.type is not ErrorType.AUTH:
                raise
            # This is how SearXNG refuses a format that its settings do not list.
            raise ToolError(
                ErrorType.PERMANENT,
                "Your search engine doesn't let me search it.",
                suggestion='Add "json" to search.formats in the settings.yml of SearXNG.',
            ) from error
        return tidy((each.title, each.url, each.content or "") for each in answer.results)


class DuckDuckGo:
    """Uses the engine of the package `ddgs`, whose own HTTP client talks to DuckDuckGo alone, in a thread."""

    def __init__(self) -> None:
        self._limit = asyncio.Semaphore(DDGS_AT_ONCE)

    async def search(self, query: str) -> Sequence[SearchResult]:
        async with self._limit:
            found = await asyncio.to_thread(_ask_duckduckgo, query)
        return tidy((each.title, _without_redirect(each.href), each.body) for each in found)


def _ask_duckduckgo(query: str) -> Sequence[Any]:
    try:
        # Not the package's own front, which cannot tell a refusal from an empty page, and takes proxies from the
        # environment.
        from ddgs.engines.duckduckgo import Duckduckgo
        from ddgs.exceptions import DDGSException, TimeoutException
    except ModuleNotFoundError as error:
        raise ToolError(
            ErrorType.PERMANENT,
            "I can't search the web yet, because no search engine is set up.",
            suggestion="Set web.searxng to the address of a SearXNG, or run: pip install 'antiphon[search]'",
        ) from error
    try:
        found = Duckduckgo(timeout=DDGS_TIMEOUT_S).search(query, region="us-en", safesearch="moderate")
    except TimeoutException as error:
        raise slow(NAME) from error
    except DDGSException as error:
        raise unreachable(NAME, over_internet=True) from error
    if found is None:
        # Any status but 200, and DuckDuckGo has such an answer for those who ask too often.
        raise too_many(NAME)
    return found


def _without_redirect(url: str) -> str:
    """Returns the address behind a link of DuckDuckGo that counts clicks."""
    parts = urlsplit(url)
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path == "/l/":
        return parse_qs(parts.query).get("uddg", [""])[0]
    return url


def tidy(found: Any) -> list[SearchResult]:
    """Returns the results with a web address as plain text, each address once."""
    results: dict[str, SearchResult] = {}
    for title, url, snippet in found:
        if not _is_web_address(url):
            continue
        told = plain(title, MAX_TITLE_CHARS) or url
        results.setdefault(url, SearchResult(told, url, plain(snippet, MAX_SNIPPET_CHARS)))
    return list(results.values())[:MAX_RESULTS]


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= 2_048
