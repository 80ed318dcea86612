"""What `/v1/chat/completions` refuses, what becomes of answers that fail, and of clients that leave."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from antiphon.security.quota import Kind, Limit, Rate
from tests.fakes.chat_server import End, delta, refusal, stream, words
from tests.wire.chat_client import (
    LIGHT,
    SUM,
    SUM_IS,
    Messages,
    Upstream,
    ask,
    assistant,
    calling,
    chunks_of,
    client_of,
    rung,
    say,
    serve_upstream,
    user,
)
from tests.wire.served import UNLIMITED, Served, make_known, serve
from tests.wire.test_store_down import stored

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("refusals"), limits=UNLIMITED) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(served) as client:
        yield client


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[Upstream]:
    async with serve_upstream(tmp_path) as upstream:
        yield upstream


def with_call(id: str = "c1", arguments: str = "{}", answered: bool = True) -> Messages:
    call = {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}
    result = [{"role": "tool", "tool_call_id": "c1", "content": "x"}] if answered else []
    return [user("hi"), {"role": "assistant", "tool_calls": [call]}, *result]


GOOD_BODY: Final = {"model": "antiphon", "messages": [user("hi")]}
BAD_BODIES: Final[Mapping[str, tuple[Any, str, str | None]]] = {
    "nothing": ({}, "Missing required parameter: 'messages'.", "messages"),
    "no model": ({"messages": [user("hi")]}, "Missing required parameter: 'model'.", "model"),
    "a list": ([], "Expected `object`", None),
}
"""Each with what the message says and the field that it names."""
BAD_FIELDS: Final[Mapping[str, tuple[dict[str, Any], str, str]]] = {
    "no messages": ({"messages": []}, "length >= 1", "messages"),
    "an unknown field": ({"tempo": 1}, "argument supplied: tempo", "tempo"),
    "an unknown role": ({"messages": [{"role": "robot", "content": "x"}]}, "'robot'", "messages[0].role"),
    "no content": ({"messages": [{"role": "user"}]}, "Missing required parameter", "messages[0].content"),
    "a blank message": ({"messages": [user("  ")]}, "blank", "messages[0].content"),
    "an image": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]},
        "text only",
        "messages[0].content[0].type",
    ),
    "an answer last": ({"messages": [user("hi"), assistant("ho")]}, "`user` or `tool`", "messages[1].role"),
    "only instructions": ({"messages": [{"role": "system", "content": "x"}]}, "`user` or `tool`", "messages[0].role"),
    "a call without its result": (
        {"messages": [*with_call(answered=False), user("so?")]},
        "missing: c1",
        "messages[2]",
    ),
    "a result without its call": (
        {"messages": [user("hi"), {"role": "tool", "tool_call_id": "c9", "content": "x"}]},
        "must answer a call",
        "messages[1].tool_call_id",
    ),
    "arguments that are no JSON": (
        {"messages": with_call(arguments="{")},
        "must be JSON",
        "messages[1].tool_calls[0].function.arguments",
    ),
    "two answers": ({"n": 2}, "one answer", "n"),
    "a stop word": ({"stop": ["."]}, "`stop`", "stop"),
    "JSON output": ({"response_format": {"type": "json_object"}}, "plain text only", "response_format"),
    "spoken output": ({"modalities": ["text", "audio"]}, "text only", "modalities"),
    "log probabilities": ({"logprobs": True}, "log probabilities", "logprobs"),
    "outdated functions": ({"functions": []}, "outdated", "functions"),
    "a forced call": ({"tool_choice": "required"}, "cannot be forced", "tool_choice"),
    "a tool without a name": ({"tools": [{"type": "function", "function": {}}]}, "Missing", "tools[0].function.name"),
    "a tool with a bad name": (
        {"tools": [{"type": "function", "function": {"name": "a b"}}]},
        "matching regex",
        "tools[0].function.name",
    ),
    "two equal tools": ({"tools": [LIGHT, LIGHT]}, "same name", "tools"),
    "a custom tool": ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "'custom'", "tools[0].type"),
    "options without a stream": ({"stream_options": {"include_usage": True}}, "only allowed with", "stream_options"),
    "a number as the stream": ({"stream": 1}, "Expected `bool", "stream"),
}


@pytest.mark.parametrize("name", [*BAD_BODIES, *BAD_FIELDS])
async def test_a_bad_body_is_refused_with_the_field_that_is_wrong(served: Served, name: str) -> None:
    if name in BAD_BODIES:
        body, says, param = BAD_BODIES[name]
    else:
        fields, says, param = BAD_FIELDS[name]
        body = {**GOOD_BODY, **fields}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{served.http}/v1/chat/completions", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param), error
    assert says in error["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 5_000, b'{"model": "\\ud800"}', b'{"model": NaN}'])
async def test_a_body_that_is_not_json_is_refused(served: Served, body: bytes) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{served.http}/v1/chat/completions", content=body)
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_a_long_body_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="at most 1048576 bytes") as caught:
        await ask(client, [user("x" * (1 << 20))])
    assert caught.value.status_code == 413


async def test_a_token_is_required_where_the_server_requires_one(tmp_path: Path) -> None:
    token = await make_known(tmp_path, "ann")
    with serve(tmp_path, limits=UNLIMITED, server={"auth": "required"}) as served:
        for key in ("sk-wrong", token[:-1] + ("a" if token[-1] != "a" else "b")):
            async with client_of(served, key) as client:
                with pytest.raises(openai.AuthenticationError, match="antiphon token new"):
                    await ask(client, [user(SUM)])
                with pytest.raises(openai.AuthenticationError):
                    await client.models.list()
        async with client_of(served, token) as client:
            assert await say(client, [user(SUM)]) == SUM_IS


async def test_too_many_requests_are_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    limits = {Kind.CONNECTION: Limit(user=Rate(per_s=0.1, burst=1))}
    with serve(tmp_path, limits=limits) as served:
        async with client_of(served) as client:
            await say(client, [user(SUM)])
            with pytest.raises(openai.RateLimitError) as caught:
                await ask(client, [user(SUM)])
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 10


async def test_a_user_whom_the_assistant_blocks_is_refused_from_then_on(upstream: Upstream) -> None:
    block = ("ignore_user", {"duration_seconds": 600, "farewell_message": "Goodbye."})
    upstream.model.will_answer(calling(block), words("Goodbye."))
    assert await say(upstream.client, [user("You fool.")]) == "Goodbye. "
    for asking in (ask(upstream.client, [user("Sorry.")]), upstream.client.models.list()):
        with pytest.raises(openai.PermissionDeniedError, match="blocked") as caught:
            await asking
        assert 1 <= int(caught.value.response.headers["retry-after"]) <= 600


async def test_calls_of_tools_count_against_the_users_quota(tmp_path: Path) -> None:
    limits = {Kind.TOOL_CALL: Limit(user=Rate(per_s=0.01, burst=1))}
    async with serve_upstream(tmp_path, limits) as upstream:
        for _ in range(2):
            upstream.model.will_answer(calling(("ring_bell", {})), words("Done."))
            await say(upstream.client, [user("ring")])
        assert rung(upstream) == 1
        assert "RATE_LIMIT" in upstream.model.asked[-1].messages[-1]["content"]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_store_that_fails_is_told_and_recovers(tmp_path: Path, is_streamed: bool) -> None:
    with serve(tmp_path, limits=UNLIMITED) as served, stored(tmp_path) as database:
        async with client_of(served) as client:
            database.execute("ALTER TABLE blocks RENAME TO hidden")
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(
                    model="antiphon", messages=[{"role": "user", "content": SUM}], stream=is_streamed
                )
            assert (caught.value.status_code, caught.value.code) == (503, "unavailable")
            assert int(caught.value.response.headers["retry-after"]) > 0
            database.execute("ALTER TABLE hidden RENAME TO blocks")
            assert await say(client, [user(SUM)]) == SUM_IS


async def test_a_failure_of_the_model_is_told_before_anything_was_said(upstream: Upstream) -> None:
    upstream.model.will_answer(refusal(401, {"error": {"message": "no"}}))
    with pytest.raises(openai.InternalServerError) as caught:
        await chunks_of(upstream.client, [user("hi")])
    assert (caught.value.status_code, caught.value.code) == (502, "model_failed")


async def test_a_failure_after_a_tool_has_run_is_not_retried_by_the_sdk(upstream: Upstream) -> None:
    upstream.model.will_answer(calling(("ring_bell", {})), *[stream(delta(content="So"), done=False, end=End.CUT)] * 4)
    with pytest.raises(openai.InternalServerError):
        await ask(upstream.client.with_options(max_retries=2), [user("ring")])
    assert rung(upstream) == 1
    assert len(upstream.model.asked) == 2


async def test_a_failure_in_mid_stream_is_an_error_of_the_sdk(upstream: Upstream) -> None:
    upstream.model.will_answer(stream(delta(content="So "), done=False, end=End.CUT))
    said: list[str | None] = []

    def listen() -> None:
        # The SDK's asynchronous stream leaves a generator open after an error.
        with openai.OpenAI(base_url=f"{upstream.served.http}/v1", api_key="sk-local", max_retries=0) as client:
            for chunk in client.chat.completions.create(
                model="antiphon", messages=[{"role": "user", "content": "hi"}], stream=True
            ):
                said.append(chunk.choices[0].delta.content)

    with pytest.raises(openai.APIError, match="broke off"):
        await asyncio.to_thread(listen)
    assert said == ["So "]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_client_that_goes_away_cancels_its_answer(upstream: Upstream, is_streamed: bool) -> None:
    upstream.model.will_answer(stream(delta(content="So "), done=False, end=End.STALL))
    body = {"model": "antiphon", "messages": [user("hi")], "stream": is_streamed}
    async with httpx2.AsyncClient() as client:
        asking = asyncio.create_task(client.post(f"{upstream.served.http}/v1/chat/completions", json=body))
        await asyncio.wait_for(upstream.model.stalled.wait(), 10)
        asking.cancel()
        await asyncio.wait([asking])
    await asyncio.wait_for(upstream.model.left.wait(), 10)
    assert upstream.served.failures == []


async def test_an_answer_under_way_is_completed_before_the_server_stops(upstream: Upstream) -> None:
    counting = stream(delta(content="One "), delta(content="two "), delta(content="three."), delta("stop"))
    upstream.model.will_answer(replace(counting, pause_s=0.3))
    said = ""
    async for chunk in await upstream.client.chat.completions.create(
        model="antiphon", messages=[{"role": "user", "content": "count"}], stream=True
    ):
        if not said:
            upstream.served.process.send_signal(signal.SIGTERM)
        said += chunk.choices[0].delta.content or ""
    assert said == "One two three."


async def test_nothing_of_a_conversation_is_stored_or_logged(served: Served, client: AsyncOpenAI) -> None:
    await say(client, [{"role": "system", "content": "Secret instructions."}, user("what is 4123 plus 1")])
    async with httpx2.AsyncClient() as http:
        stored = (await http.get(f"{served.http}/api/conversations")).json()
    assert stored["conversations"] == []
    assert "4123" not in served.log
    assert served.failures == []
