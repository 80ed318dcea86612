"""Short answers: DuckDuckGo's instant answers first, then the summary of a Wikipedia article."""

import asyncio
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, field

from antiphon.services.http.sites import Params, Site
from antiphon.services.web.text import first_sentences, plain
from antiphon.tools.capabilities.web import QuickAnswer
from antiphon.tools.errors import ToolError

MAX_TITLE_CHARS: Final = 150
MAX_ANSWER_CHARS: Final = 600
ARTICLES: Final = 3
"""How many articles are looked at; those that only list meanings of a word are skipped."""


class _Instant(Struct):
    """The fields are empty if there is no answer."""

    heading: str = field(default="", name="Heading")
    answer: Any = field(default="", name="Answer")
    """An object if it belongs to a widget."""
    abstract: str = field(default="", name="AbstractText")
    abstract_source: str = field(default="", name="AbstractSource")
    abstract_url: str = field(default="", name="AbstractURL")
    definition: str = field(default="", name="Definition")
    definition_source: str = field(default="", name="DefinitionSource")
    definition_url: str = field(default="", name="DefinitionURL")


class _Article(Struct):
    key: str
    title: str


class _Articles(Struct):
    pages: list[_Article]


class _Page(Struct, frozen=True):
    page: str = ""


class _Urls(Struct, frozen=True):
    desktop: _Page = _Page()


class _Summary(Struct):
    title: str
    extract: str = ""
    type: str = "standard"
    content_urls: _Urls = _Urls()


class QuickAnswers:
    def __init__(self, instant: Site, wikipedia: Site) -> None:
        self._instant = instant
        self._wikipedia = wikipedia

    async def answer(self, query: str) -> QuickAnswer | None:
        """Asks both at once, since there is no time to ask one after the other. Raises `ToolError` if neither can be
        asked, or if one cannot and the other knows nothing."""
        second = asyncio.create_task(self._ask_wikipedia(query))
        failure: ToolError | None = None
        try:
            try:
                if (first := await self._ask_instant(query)) is not None:
                    return first
            except ToolError as error:
                failure = error
            try:
                found = await second
            except ToolError as error:
                raise failure or error from error
            if found is None and failure is not None:
                raise failure
            return found
        finally:
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)

    async def _ask_instant(self, query: str) -> QuickAnswer | None:
        params: Params = {
            "q": query,
            "format": "json",
            "no_html": 1,
            "skip_disambig": 1,
            "no_redirect": 1,
            "t": "antiphon",
        }
        found = await self._instant.get_json("/", params, _Instant)
        title = plain(found.heading or query, MAX_TITLE_CHARS)
        if isinstance(found.answer, str) and found.answer.strip():
            return QuickAnswer(title, _short(found.answer), "DuckDuckGo", None)
        for text, source, url in (
            (found.abstract, found.abstract_source, found.abstract_url),
            (found.definition, found.definition_source, found.definition_url),
        ):
            if text.strip():
                return QuickAnswer(title, _short(text), plain(source, MAX_TITLE_CHARS) or "DuckDuckGo", _web(url))
        return None

    async def _ask_wikipedia(self, query: str) -> QuickAnswer | None:
        params: Params = {"q": query, "limit": ARTICLES}
        found = await self._wikipedia.get_json("/w/rest.php/v1/search/page", params, _Articles)
        for article in found.pages[:ARTICLES]:
            path = f"/api/rest_v1/page/summary/{quote(article.key, safe='')}"
            summary = await self._wikipedia.get_json(path, None, _Summary)
            if summary.type == "standard" and summary.extract.strip():
                url = _web(summary.content_urls.desktop.page)
                return QuickAnswer(plain(summary.title, MAX_TITLE_CHARS), _short(summary.extract), "Wikipedia", url)
        return None


def _short(text: str) -> str:
    return first_sentences(plain(text, 4 * MAX_ANSWER_CHARS), MAX_ANSWER_CHARS)


def _web(url: str) -> str | None:
    return url if url.startswith(("http://", "https://")) else None
