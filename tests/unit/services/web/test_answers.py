"""Short answers: DuckDuckGo's instant answers, then Wikipedia."""

from collections.abc import AsyncIterator

import pytest

from antiphon.clock import SystemClock
from antiphon.config import Weather, Web
from antiphon.services.web import WebLookup, open_web
from antiphon.services.web.text import first_sentences
from antiphon.tools.errors import ErrorType, ToolError
from tests.fakes.local_http import Reply, serving, without_tls
from tests.fakes.public_web import ADA, PublicWeb

pytestmark = pytest.mark.real_time
WIKIPEDIA_SEARCH = "/w/rest.php/v1/search/page"


@pytest.fixture
async def answers() -> AsyncIterator[tuple[WebLookup, PublicWeb]]:
    async with serving(PublicWeb()) as web:
        settings = Web(duckduckgo=web.server.url, wikipedia=web.server.url)
        async with open_web(settings, Weather(), SystemClock(), without_tls()) as services:
            yield services.web, web


Opened = tuple[WebLookup, PublicWeb]


async def test_an_instant_answer_comes_first(answers: Opened) -> None:
    answers[1].instant = {
        "Heading": "Tea",
        "AbstractText": "Tea is a drink.",
        "AbstractSource": "Wikipedia",
        "AbstractURL": "https://en.wikipedia.org/wiki/Tea",
    }
    answers[1].articles["Ada_Lovelace"] = ADA
    found = await answers[0].answer("tea")
    assert found is not None
    assert (found.title, found.text, found.source) == ("Tea", "Tea is a drink.", "Wikipedia")
    assert found.url == "https://en.wikipedia.org/wiki/Tea"


async def test_a_computed_answer_has_no_address(answers: Opened) -> None:
    answers[1].instant = {"Answer": "<b>42</b>", "AnswerType": "calc"}
    found = await answers[0].answer("6 x 7")
    assert found is not None
    assert (found.text, found.source, found.url) == ("42", "DuckDuckGo", None)


async def test_the_answer_of_a_widget_is_no_answer(answers: Opened) -> None:
    answers[1].instant = {"Answer": {"from": "calculator", "id": "calculator"}, "AnswerType": "calc"}
    assert await answers[0].answer("6 x 7") is None


async def test_wikipedia_answers_what_duckduckgo_does_not_know(answers: Opened) -> None:
    answers[1].articles = {
        "Ada": {"type": "disambiguation", "title": "Ada", "extract": "Ada may refer to:"},
        "Ada_Lovelace": ADA,
    }
    found = await answers[0].answer("ada lovelace")
    assert found is not None
    assert (found.title, found.source) == ("Ada Lovelace", "Wikipedia")
    assert found.url == "https://en.wikipedia.org/wiki/Ada_Lovelace"
    assert found.text.startswith("Augusta Ada King")


async def test_nobody_knowing_anything_is_no_answer(answers: Opened) -> None:
    assert await answers[0].answer("qwxyz") is None


async def test_one_source_is_enough(answers: Opened) -> None:
    answers[1].articles["Ada_Lovelace"] = ADA
    answers[1].replies["/"] = Reply(status=500)
    found = await answers[0].answer("ada lovelace")
    assert found is not None
    assert found.source == "Wikipedia"


async def test_if_one_source_fails_and_the_other_knows_nothing_it_is_a_failure(answers: Opened) -> None:
    answers[1].replies["/"] = Reply(status=429)
    with pytest.raises(ToolError) as error:
        await answers[0].answer("ada lovelace")
    assert error.value.type is ErrorType.RATE_LIMIT


async def test_the_failure_of_the_second_source_counts_if_the_first_knows_nothing(answers: Opened) -> None:
    answers[1].replies[WIKIPEDIA_SEARCH] = Reply(status=500)
    with pytest.raises(ToolError) as error:
        await answers[0].answer("ada lovelace")
    assert error.value.type is ErrorType.TRANSIENT


async def test_an_answer_that_is_there_does_not_wait_for_the_other_source(answers: Opened) -> None:
    answers[1].instant = {"AbstractText": "Tea is a drink."}
    answers[1].replies[WIKIPEDIA_SEARCH] = Reply({"pages": []}, delay_s=30)
    assert await answers[0].answer("tea") is not None


async def test_the_client_says_who_it_is(answers: Opened) -> None:
    await answers[0].answer("tea")
    assert all(each.headers["user-agent"].startswith("Antiphon/") for each in answers[1].server.received)


def test_long_texts_end_with_a_whole_sentence() -> None:
    text = "One is short. Two is a little longer. Three goes on and on."
    assert first_sentences(text, 40) == "One is short. Two is a little longer."
    assert first_sentences(text, 5).endswith("…")
    assert first_sentences("No. 5 in the U.S. is this. And that.", 30) == "No. 5 in the U.S. is this."
