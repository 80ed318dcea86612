"""Whatever a server does wrong is a `ModelError` with a sentence for people."""

import socket
from typing import Any

import pytest

from antiphon.models.base import ModelError, Prompt
from antiphon.models.providers import open_text_model
from antiphon.models.providers.failures import read_retry_after
from antiphon.models.providers.references import parse
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.chat_server import Answer, End, call_delta, delta, event, refusal, serve_model, stream

pytestmark = pytest.mark.real_time

PROMPT = Prompt("", [UserMessage("hi")], [], Mode.TEXT)
KEY = "sk-0123456789abcdef"


async def failure(answer: Answer, env: Any = None, **options: Any) -> ModelError:
    async with serve_model([answer], env=env, **options) as (_, model):
        with pytest.raises(ModelError) as failed:
            [event async for event in model.reply(PROMPT)]
        return failed.value


WEATHER: dict[str, Any] = {"index": 0, "id": "call_A", "function": {"name": "get_weather", "arguments": ""}}


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


@pytest.mark.parametrize(
    ("answer", "says", "retryable"),
    [
        (refusal(400, error("bad tools")), r"refused the request \(HTTP 400\): bad tools", False),
        (refusal(404, error("model 'm' not found")), "was not found at http.*: model 'm' not found", False),
        (refusal(404, "404 page not found"), "was not found at http", False),
        (refusal(408, error("slow")), "HTTP 408", True),
        (refusal(422, error("no")), "HTTP 422", False),
        (refusal(500, error("boom")), r"an internal error \(HTTP 500\): boom", True),
        (refusal(503), "HTTP 503", True),
        (refusal(400, [error("in a list", code=400)]), "in a list", False),
        (refusal(400, {"error": "only text"}), "only text", False),
        (refusal(502, "<html><body>Bad gateway</body></html>"), r"\(HTTP 502\)\.$", True),
        (stream(delta(content="Once"), error("boom")), "broke off with an error: boom", True),
        (stream(delta(content="Once"), {"error": "only text"}), "only text", True),
        (stream(delta(content="Once"), done=False, end=End.CUT), "broke off", True),
        (stream(delta(content="Your balance is 1"), done=False), "was cut off before its end", True),
        (stream(call_delta(WEATHER), done=False), "was cut off before its end", True),
        (stream(call_delta(WEATHER), delta("length")), "was cut off before its end", True),
        (refusal(307, location="http://127.0.0.1:1/v1"), "redirect to another address", False),
        (refusal(500, error("\ud83d")), "HTTP 500\\): \ufffd", True),
        (stream(finish=None), "did not stream its answer", False),
        (Answer((b"<html>Welcome</html>\n\n",)), "did not stream its answer", False),
        (Answer((b"data: {no json\n\n",)), "with a chat completion", False),
        (
            Answer((b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n',)),
            "with a chat completion",
            False,
        ),
        (Answer((event("[" * 100_000),)), "with a chat completion", False),
        (stream("null"), "with a chat completion", False),
        (stream({"choices": "many"}), "with a chat completion", False),
        (
            stream(call_delta({"function": {"name": "f", "arguments": 7}})),
            "with a chat completion",
            False,
        ),
    ],
)
async def test_a_failure_is_reported_in_a_sentence(answer: Answer, says: str, retryable: bool) -> None:
    failed = await failure(answer)
    assert "openai:http://127.0.0.1:" in failed.args[0]
    assert (failed.retryable, failed.rate_limited) == (retryable, False)
    with pytest.raises(ModelError, match=says):
        raise failed


@pytest.mark.parametrize(
    "answer",
    [
        refusal(429, error("slow down")),
        refusal(429, [error("Quota exceeded", code=429, status="RESOURCE_EXHAUSTED")]),
        refusal(403, error("Quota exceeded for this project")),
        stream(delta(content="Once"), error("Rate limit reached")),
        stream(delta(content="Once"), error("busy", code=429)),
        stream(delta(content="Once"), error("RESOURCE_EXHAUSTED")),
    ],
)
async def test_a_rate_limit_is_distinguished_from_other_failures(answer: Answer) -> None:
    failed = await failure(answer)
    assert (failed.rate_limited, failed.retryable) == (True, True)


@pytest.mark.parametrize("status", [429, 503])
async def test_the_servers_retry_time_is_reported(status: int) -> None:
    assert (await failure(refusal(status, retry_after="7"))).retry_after_s == 7


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Mon, 02 Mar 2026 10:00:30 GMT", "date": "Mon, 02 Mar 2026 10:00:00 GMT"}, 30),
        ({"retry-after": "Mon, 02 Mar 2026 10:00:30 GMT"}, None),
    ],
)
def test_the_retry_time_is_read_from_the_headers(headers: dict[str, str], wait_s: float | None) -> None:
    assert read_retry_after(headers) == wait_s


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named_by_its_variable_and_never_shown(status: int) -> None:
    failed = await failure(refusal(status, error(f"Incorrect API key: {KEY}")), env={"OPENAI_API_KEY": KEY})
    assert str(failed).endswith("refused the API key. Check OPENAI_API_KEY.")
    assert not failed.retryable


async def test_a_missing_key_is_asked_for() -> None:
    assert "requires an API key. Check OPENAI_API_KEY" in str(await failure(refusal(401)))


async def test_a_key_in_the_servers_message_is_redacted() -> None:
    failed = await failure(refusal(400, error(f"{KEY} may not do this")), env={"OPENAI_API_KEY": KEY})
    assert KEY not in str(failed)


async def test_a_long_error_message_is_truncated_to_one_line() -> None:
    said = str(await failure(refusal(400, error("no\n" * 1000))))
    assert len(said) < 500
    assert "\n" not in said


async def test_a_silent_server_times_out() -> None:
    failed = await failure(stream(delta(content="Once"), done=False, end=End.STALL), chunk_timeout_s=0.05)
    assert str(failed).endswith("did not answer in time.")
    assert failed.retryable


async def test_an_unreachable_server_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        model = open_text_model(parse(f"openai:{url}#m"), {})
        with pytest.raises(ModelError, match=f"Check that a server is running at {url}") as failed:
            [event async for event in model.reply(PROMPT)]
        await model.aclose()
    assert failed.value.retryable
