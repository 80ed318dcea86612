"""The tools of the web through the gate, in both modes, against a server that answers as the real services do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.clock import SystemClock
from antiphon.config import Weather, Web
from antiphon.services.web import open_web
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Failure, ToolResult
from antiphon.tools.spec import Mode
from tests.fakes.gates import Gate
from tests.fakes.local_http import Reply, serving, without_tls
from tests.fakes.public_web import ADA, PublicWeb
from tests.fakes.toolkit import built_in

pytestmark = pytest.mark.real_time

TOOLS = ("get_weather", "get_forecast", "web_search", "quick_answer", "open_url")
CALLS: dict[str, dict[str, Any]] = {
    "get_weather": {"location": "Oslo"},
    "get_forecast": {"location": "Oslo"},
    "web_search": {"query": "tea"},
    "quick_answer": {"query": "Ada Lovelace"},
}
PATHS = {
    "get_weather": ["/v1/forecast"],
    "get_forecast": ["/v1/forecast"],
    "web_search": ["/search"],
    "quick_answer": ["/", "/w/rest.php/v1/search/page"],
}


class Browsing:
    """A gate with the tools of the web, and what it is connected to."""

    def __init__(self, gate: Gate, web: PublicWeb) -> None:
        self.gate = gate
        self.web = web

    async def call(self, name: str, mode: Mode = Mode.TEXT, **args: Any) -> ToolResult:
        self.gate.session.mode = mode
        return await self.gate.call(name, args)

    async def failure(self, name: str, mode: Mode = Mode.TEXT, **args: Any) -> Failure:
        error = (await self.call(name, mode, **args)).error
        assert error is not None
        return error


@asynccontextmanager
async def browse(**weather: Any) -> AsyncIterator[Browsing]:
    async with serving(PublicWeb()) as web:
        url = web.server.url
        settings = Web(searxng=url, duckduckgo=url, wikipedia=url)
        where = Weather(forecast_url=url, geocoding_url=url, **weather)
        async with open_web(settings, where, SystemClock(), without_tls()) as services:
            gate = Gate(
                *(built_in()[name] for name in TOOLS),
                offers={
                    "fetch": lambda session, tool: services.fetch,
                    "weather": lambda session, tool: services.weather,
                    "web": lambda session, tool: services.web,
                },
            )
            yield Browsing(gate, web)
            await gate.executor.aclose()


@pytest.fixture
async def browsing() -> AsyncIterator[Browsing]:
    async with browse() as made:
        made.web.articles["Ada_Lovelace"] = ADA
        made.web.results = [{"title": "Tea", "url": "https://tea.example/", "content": "A drink.", "engine": "x"}]
        yield made


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("name", list(CALLS))
async def test_each_tool_works_in_each_mode(browsing: Browsing, name: str, mode: Mode) -> None:
    result = await browsing.call(name, mode, **CALLS[name])
    assert result.ok, result.error
    assert result.citations
    assert result.spoken


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("name", list(CALLS))
async def test_a_lost_connection_is_transient_and_said_so(name: str, mode: Mode) -> None:
    async with browse() as browsing:
        browsing.web.server.stop_listening()
        failure = await browsing.failure(name, mode, **CALLS[name])
    assert failure.type is ErrorType.TRANSIENT
    assert failure.message.startswith("I can't reach ")


@pytest.mark.parametrize("name", list(CALLS))
async def test_a_service_that_is_slower_than_the_budget_is_given_up_in_voice(browsing: Browsing, name: str) -> None:
    browsing.web.replies = dict.fromkeys(PATHS[name], Reply({}, delay_s=3))
    async with asyncio.timeout(1.5):
        result = await browsing.call(name, Mode.VOICE, **CALLS[name])
    assert result.error is not None
    assert result.error.type is ErrorType.TRANSIENT
    assert result.spoken == "That took too long, so I stopped waiting for it."


async def test_an_answer_that_came_too_late_for_one_turn_is_there_for_the_next(browsing: Browsing) -> None:
    slow = Reply(browsing.web.forecast({"forecast_days": "7", "latitude": "1", "longitude": "1"}), delay_s=1.0)
    browsing.web.replies["/v1/forecast"] = slow
    assert not (await browsing.call("get_weather", Mode.VOICE, location="Oslo")).ok
    browsing.gate.next_turn()
    assert (await browsing.call("get_weather", Mode.VOICE, location="Oslo")).ok
    assert browsing.web.server.paths.count("/v1/forecast") == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("{broken", status=200), ErrorType.TRANSIENT),
        (Reply("<html>Sign in to the hotel's network</html>"), ErrorType.TRANSIENT),
        (Reply([1, 2, 3]), ErrorType.TRANSIENT),
        (Reply(status=500), ErrorType.TRANSIENT),
        (Reply({"error": True, "reason": "Too many"}, status=429, headers={"retry-after": "30"}), ErrorType.RATE_LIMIT),
        (Reply({"error": True, "reason": "No"}, status=400), ErrorType.PERMANENT),
        (Reply(b"x" * 2_000_000), ErrorType.PERMANENT),
        (Reply({"a": "b"}, is_cut=True), ErrorType.TRANSIENT),
    ],
)
@pytest.mark.parametrize("name", list(CALLS))
async def test_each_failure_of_a_service_has_its_type_and_a_sentence(
    browsing: Browsing, name: str, reply: Reply, kind: ErrorType
) -> None:
    browsing.web.replies = dict.fromkeys(PATHS[name], reply)
    failure = await browsing.failure(name, **CALLS[name])
    assert failure.type is kind
    assert failure.message.endswith(".")
    assert name not in failure.message
    if kind is ErrorType.RATE_LIMIT:
        assert failure.retry_after_s == 30


async def test_text_mode_tries_a_failed_service_twice(browsing: Browsing) -> None:
    browsing.web.replies["/v1/forecast"] = Reply(status=500)
    await browsing.call("get_weather", Mode.TEXT, location="Oslo")
    assert browsing.web.server.paths.count("/v1/forecast") == 2


async def test_voice_mode_tries_a_failed_service_once(browsing: Browsing) -> None:
    browsing.web.replies["/v1/forecast"] = Reply(status=500)
    await browsing.call("get_weather", Mode.VOICE, location="Oslo")
    assert browsing.web.server.paths.count("/v1/forecast") == 1


@pytest.mark.parametrize("name", list(CALLS))
async def test_what_came_from_the_web_makes_a_later_action_need_approval(browsing: Browsing, name: str) -> None:
    opening: dict[str, Any] = {"url": "https://example.org"}
    assert (await browsing.call("open_url", **opening)).ok
    browsing.gate.next_turn()
    assert (await browsing.call(name, **CALLS[name])).ok
    assert browsing.gate.session.ledger.untrusted
    refused = await browsing.failure("open_url", **opening)
    assert refused.type is ErrorType.CONFIRMATION_REQUIRED
    browsing.gate.next_turn()
    assert (await browsing.call("open_url", **opening)).ok


async def test_a_search_that_failed_brings_nothing_untrusted(browsing: Browsing) -> None:
    browsing.web.replies["/search"] = Reply(status=500)
    await browsing.call("web_search", query="tea")
    assert not browsing.gate.session.ledger.untrusted


@pytest.mark.parametrize(
    "arguments", [{"query": ""}, {"query": "   "}, {"query": "x" * 301}, {"query": "a", "top_k": 0}, {}]
)
async def test_bad_arguments_of_a_search_are_refused(browsing: Browsing, arguments: dict[str, Any]) -> None:
    assert (await browsing.failure("web_search", **arguments)).type is ErrorType.VALIDATION
    assert browsing.web.server.received == []


@pytest.mark.parametrize("days", [0, 8, 2.5, "3"])
async def test_a_forecast_has_one_to_seven_days(browsing: Browsing, days: Any) -> None:
    assert (await browsing.failure("get_forecast", location="Oslo", days=days)).type is ErrorType.VALIDATION


async def test_voice_gets_three_results(browsing: Browsing) -> None:
    browsing.web.results = [{"title": f"{n}", "url": f"https://{n}.example/", "content": ""} for n in range(8)]
    spoken = await browsing.call("web_search", Mode.VOICE, query="tea")
    assert len(spoken.data["results"]) == 3
    browsing.gate.next_turn()
    typed = await browsing.call("web_search", Mode.TEXT, query="tea")
    assert len(typed.data["results"]) == 5
    assert browsing.web.server.paths == ["/search"]
