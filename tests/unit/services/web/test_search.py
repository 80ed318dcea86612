"""Searching: SearXNG as its API answers, and DuckDuckGo through the real package against a local page."""

import sys
from collections.abc import AsyncIterator
from urllib.parse import parse_qs

import pytest
from ddgs.engines.duckduckgo import Duckduckgo

from antiphon.clock import SystemClock
from antiphon.config import Weather, Web
from antiphon.services.web import WebLookup, open_web
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.local_http import LocalServer, Reply, serve, serving, without_tls
from tests.fakes.public_web import PublicWeb

pytestmark = pytest.mark.real_time

RESULT = """<div class="result results_links"><div class="links_main links_deep result__body">
<h2 class="result__title"><a class="result__a" href="{url}">{title}</a></h2>
<a class="result__snippet" href="{url}">{body}</a></div></div>"""


@pytest.fixture
async def searxng() -> AsyncIterator[tuple[WebLookup, PublicWeb]]:
    async with (
        serving(PublicWeb()) as web,
        open_web(Web(searxng=f"{web.server.url}/"), Weather(), SystemClock(), without_tls()) as services,
    ):
        yield services.web, web


async def test_searxng_is_asked_for_json(searxng: tuple[WebLookup, PublicWeb]) -> None:
    web, server = searxng
    server.results = [{"title": "Tea", "url": "https://tea.example/", "content": "A drink.", "score": 1.0}]
    [result] = await web.search("green   tea", 5)
    assert (result.title, result.url, result.snippet) == ("Tea", "https://tea.example/", "A drink.")
    query = server.server.received[0].query
    assert (query["q"], query["format"]) == ("green tea", "json")


async def test_results_are_plain_text_and_web_addresses_only(searxng: tuple[WebLookup, PublicWeb]) -> None:
    web, server = searxng
    server.results = [
        {
            "title": "<b>Bold</b> &amp; \u202ehidden\x07",
            "url": "https://a.example/",
            "content": "<script>x</script>" + "y " * 500,
        },
        {"title": "Bad", "url": "javascript:alert(1)", "content": ""},
        {"title": "Bad", "url": "file:///etc/passwd", "content": ""},
        {"title": "Bad", "url": "http://[", "content": ""},
        {"title": "Twice", "url": "https://a.example/", "content": ""},
        {"title": "", "url": "https://b.example/", "content": None},
    ]
    first, second = await web.search("q", 10)
    assert first.title == "Bold & hidden"
    assert first.snippet.startswith("xy y y")
    assert len(first.snippet) <= 400
    assert second.title == "https://b.example/"


async def test_a_searxng_that_does_not_allow_json_says_what_to_change(searxng: tuple[WebLookup, PublicWeb]) -> None:
    web, server = searxng
    server.replies["/search"] = Reply("<h1>Forbidden</h1>", status=403)
    with pytest.raises(ToolError) as error:
        await web.search("q", 5)
    assert error.value.type is ErrorType.PERMANENT
    assert "search.formats" in (error.value.suggestion or "")


@pytest.fixture
async def duckduckgo(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[WebLookup, LocalServer, list[Reply]]]:
    replies: list[Reply] = []
    async with serve(lambda request: replies[0]) as server:
        monkeypatch.setattr(Duckduckgo, "search_url", f"{server.url}/html/")
        async with open_web(Web(), Weather(), SystemClock(), without_tls()) as services:
            yield services.web, server, replies


Ddg = tuple[WebLookup, LocalServer, list[Reply]]


def page(*results: dict[str, str]) -> Reply:
    body = "".join(RESULT.format(**result) for result in results)
    return Reply(f"<html><body>{body}</body></html>", headers={"content-type": "text/html"})


async def test_duckduckgo_is_searched_if_no_searxng_is_set(duckduckgo: Ddg) -> None:
    web, server, replies = duckduckgo
    redirected = "//duckduckgo.com/l/?uddg=https%3A%2F%2Fb.example%2Fx&amp;rut=1"
    replies.append(
        page(
            {"url": "https://a.example/", "title": "First", "body": "The first."},
            {"url": redirected, "title": "Second", "body": "The second."},
        )
    )
    first, second = await web.search("green tea", 5)
    assert (first.title, first.url) == ("First", "https://a.example/")
    assert first.snippet.endswith("The first.")
    assert second.url == "https://b.example/x"
    assert parse_qs(server.received[0].body.decode())["q"] == ["green tea"]


async def test_an_empty_page_is_no_result(duckduckgo: Ddg) -> None:
    web, _, replies = duckduckgo
    replies.append(page())
    assert list(await web.search("qwxyz", 5)) == []


@pytest.mark.parametrize("status", [202, 403, 429, 500])
async def test_a_refusal_is_not_taken_for_an_empty_page(duckduckgo: Ddg, status: int) -> None:
    web, _, replies = duckduckgo
    replies.append(Reply("<html></html>", status=status))
    with pytest.raises(ToolError) as error:
        await web.search("q", 5)
    assert error.value.type is ErrorType.RATE_LIMIT


async def test_no_connection_is_transient(duckduckgo: Ddg) -> None:
    web, server, _ = duckduckgo
    server.stop_listening()
    with pytest.raises(ToolError, match="internet connection may be down") as error:
        await web.search("q", 5)
    assert error.value.type is ErrorType.TRANSIENT


async def test_a_slow_search_ends(duckduckgo: Ddg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.services.web.search.DDGS_TIMEOUT_S", 1)
    web, _, replies = duckduckgo
    replies.append(Reply("late", delay_s=3))
    with pytest.raises(ToolError) as error:
        await web.search("q", 5)
    assert error.value.type is ErrorType.TRANSIENT


async def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ddgs"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ddgs", None)
    async with open_web(Web(), Weather(), SystemClock(), without_tls()) as services:
        with pytest.raises(ToolError) as error:
            await services.web.search("q", 5)
    assert error.value.type is ErrorType.PERMANENT
    assert "antiphon[search]" in (error.value.suggestion or "")
