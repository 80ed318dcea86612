"""Ollama's own API: requests, answers, and what can go wrong."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from antiphon.config import Ollama
from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TextModel,
    TokensUsed,
)
from antiphon.models.bounded import MAX_CALLS
from antiphon.models.providers import open_text_model
from antiphon.models.providers.events import MAX_EVENT_BYTES
from antiphon.models.providers.references import parse
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.chat_server import HANG_UP, Answer, ChatServer, End, refusal
from tests.fakes.ollama_server import Installed, Rules, call, chat, last_line, line, ndjson, serve_ollama
from tests.fakes.tree import PYTHON_PATH

pytestmark = pytest.mark.real_time

HELLO = UserMessage("hello")
FINE = chat(line("Fine."))
RICH: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a table.",
        "parameters": {
            "type": "object",
            "properties": {
                "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None},
                "guests": {
                    "type": "object",
                    "properties": {"names": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
                },
            },
            "required": ["when"],
            "additionalProperties": False,
            "$defs": {"n": {"type": "string", "minLength": 1}},
        },
    },
}


def ask(model: TextModel, *messages: Message, tools: Any = ()) -> Any:
    return model.reply(Prompt("Be brief.", messages or (HELLO,), tools, Mode.TEXT))


async def all_of(events: Any) -> list[Event]:
    return [event async for event in events]


async def reply(answer: Answer) -> list[Event]:
    async with serve_ollama([answer]) as (_, model):
        return await all_of(ask(model))


async def sent(*messages: Message, tools: Any = (), **options: Any) -> dict[str, Any]:
    """The request body for this conversation."""
    async with serve_ollama([FINE], **options) as (server, model):
        await all_of(ask(model, *messages, tools=tools))
        body: dict[str, Any] = server.requests[-1].body
        return body


async def failure(answer: Answer, **options: Any) -> ModelError:
    async with serve_ollama([answer], **options) as (_, model):
        with pytest.raises(ModelError) as failed:
            await all_of(ask(model, tools=[RICH]))
        return failed.value


async def test_a_conversation_is_sent_in_ollamas_format() -> None:
    made = AssistantMessage("Let me see.", (CallMade("call_A", "get_weather", {"city": "Oslo"}),))
    body = await sent(HELLO, made, ToolMessage("call_A", "get_weather", {"c": 3}), AssistantMessage("Cold."), HELLO)
    called = {"id": "call_A", "function": {"index": 0, "name": "get_weather", "arguments": {"city": "Oslo"}}}
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [called]},
        {"role": "tool", "tool_name": "get_weather", "tool_call_id": "call_A", "content": '{"c":3}'},
        {"role": "assistant", "content": "Cold."},
        {"role": "user", "content": "hello"},
    ]


async def test_an_empty_message_is_not_sent() -> None:
    body = await sent(HELLO, AssistantMessage(""), HELLO)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "user"]


@pytest.mark.parametrize("args", ["{city: Oslo}", "", ["Oslo"], None])
async def test_arguments_that_are_not_an_object_are_wrapped_in_one(args: Any) -> None:
    made = AssistantMessage(calls=(CallMade("call_A", "get_weather", args),))
    body = await sent(HELLO, made, ToolMessage("call_A", "get_weather", "x"))
    assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"invalid_arguments": args}


async def test_a_rich_schema_is_sent_unchanged() -> None:
    assert (await sent(HELLO, tools=[RICH]))["tools"] == [RICH]


async def test_without_tools_the_field_is_omitted() -> None:
    assert "tools" not in await sent(HELLO)


async def test_the_context_is_large_enough_for_the_prompt_and_the_model_stays_loaded_and_does_not_think() -> None:
    body = await sent(HELLO)
    assert (body["options"], body["keep_alive"], body["think"]) == ({"num_ctx": 16_384}, "30m", False)


async def test_the_settings_are_sent() -> None:
    thinker = {"m:latest": Installed(frozenset({"completion", "tools", "thinking"}))}
    body = await sent(HELLO, settings=Ollama(keep_alive="2h", num_ctx=4096, think=True), models=thinker)
    assert (body["options"], body["keep_alive"], body["think"]) == ({"num_ctx": 4096}, "2h", True)


async def test_a_server_that_refuses_to_hear_of_thinking_is_asked_without_it() -> None:
    async with serve_ollama([FINE, FINE], refuses_think=True) as (server, model):
        assert TextDelta("Fine.") in await all_of(ask(model))
        await all_of(ask(model))
        assert ["think" in request.body for request in server.requests] == [True, False, False]


async def test_two_first_messages_at_once_are_both_asked_again_without_thinking() -> None:
    async with serve_ollama(lambda _: FINE, refuses_think=True) as (_, model):
        both = await asyncio.gather(all_of(ask(model)), all_of(ask(model)))
    assert all(TextDelta("Fine.") in events for events in both)


async def test_text_arrives_while_the_rest_is_still_being_generated() -> None:
    async with serve_ollama([ndjson(line("Once"), end=End.STALL)]) as (server, model):
        events = ask(model)
        assert await anext(events) == TextDelta("Once")
        await events.aclose()
        await asyncio.wait_for(server.left.wait(), 5)


async def test_tokens_are_counted() -> None:
    events = await reply(chat(line("Hi."), prompt_eval_count=169, eval_count=15))
    assert events == [TextDelta("Hi."), TokensUsed(169, 15), MessageComplete(StopReason.DONE)]


@pytest.mark.parametrize(
    "answer",
    [
        chat(line(thinking="Hm."), line("Grü", thinking=""), line("ße.")),
        chat(line("<think>Hm."), line("Hm.</th"), line("ink>\n\nGrüße.")),
        Answer(tuple(bytes([byte]) for byte in b"".join(chat(line("Grüße.")).pieces))),
        Answer((b"".join(chat(line("Grü"), line("ße.")).pieces).replace(b"\n", b"\r\n"),)),
        ndjson(b"\n", line("Grüße."), last_line()),
        ndjson({**last_line(), "message": {"content": "Grüße."}}),
        ndjson(line("Grüße."), {"done": True}),
    ],
)
async def test_only_what_the_model_says_is_spoken(answer: Answer) -> None:
    events = await reply(answer)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Grüße."
    assert events[-1] == MessageComplete(StopReason.DONE)


OSLO = {"city": "Oslo"}


@pytest.mark.parametrize(
    ("lines", "calls"),
    [
        ([line(tool_calls=[call("get_weather", OSLO, "call_ab12cd34")])], [("call_ab12cd34", "get_weather", OSLO)]),
        (
            [line(tool_calls=[call("get_weather", OSLO, "a1"), call("set_light", {}, "b2", 1)])],
            [("a1", "get_weather", OSLO), ("b2", "set_light", {})],
        ),
        (
            [line(tool_calls=[call("get_weather", OSLO)]), line(tool_calls=[call("get_weather", {"city": "Rome"})])],
            [(None, "get_weather", OSLO), (None, "get_weather", {"city": "Rome"})],
        ),
        ([line(tool_calls=[call("get_weather", OSLO, "")])], [(None, "get_weather", OSLO)]),
        ([line(tool_calls=[call("set_light", None, "a1")])], [("a1", "set_light", {})]),
        ([line(tool_calls=[call("get_weather", '{"city":"Oslo"}', "a1")])], [("a1", "get_weather", OSLO)]),
        ([line(tool_calls=[call("get_weather", "{city: Oslo}", "a1")])], [("a1", "get_weather", "{city: Oslo}")]),
    ],
)
async def test_calls_are_parsed(lines: list[Any], calls: list[tuple[str | None, str, Any]]) -> None:
    events = await reply(chat(*lines))
    assert [event.call for event in events if isinstance(event, CallRequested)] == [ToolCall(*each) for each in calls]
    assert events[-1] == MessageComplete(StopReason.CALLS)


async def test_half_a_character_is_replaced() -> None:
    text = json.dumps(line("Hi \ud83d!", tool_calls=[call("f", {"a": "\ud83d"}, "a1")])).encode() + b"\n"
    events = await reply(ndjson(text, last_line()))
    assert events[:2] == [TextDelta("Hi \ufffd!"), CallRequested(ToolCall("a1", "f", {"a": "\ufffd"}))]


@pytest.mark.parametrize(
    ("answer", "says", "kind"),
    [
        (ndjson(line("Once")), "was cut off before its end", FailureKind.CUT_OFF),
        (ndjson(line(tool_calls=[call("f", {}, "a1")])), "was cut off before its end", FailureKind.CUT_OFF),
        (
            ndjson(line(tool_calls=[call("f", {}, "a1")]), last_line("length")),
            "was cut off before its end",
            FailureKind.CUT_OFF,
        ),
        (ndjson(), "was cut off before its end", FailureKind.CUT_OFF),
        (ndjson(line("Once"), end=End.CUT), "broke off", FailureKind.UNREACHABLE),
        (
            ndjson(line("Once"), {"error": "model runner has unexpectedly stopped"}),
            "broke off with an error: model runner has unexpectedly stopped",
            FailureKind.SERVER_ERROR,
        ),
        (refusal(500, {"error": "model requires more system memory"}), "more system memory", FailureKind.SERVER_ERROR),
        (refusal(429, {"error": "too many requests"}), "accepts no more requests", FailureKind.RATE_LIMITED),
        (refusal(401, {"error": "unauthorized"}), "requires an API key. Check OLLAMA_API_KEY", FailureKind.REFUSED),
        (refusal(307, location="http://127.0.0.1:1"), "redirect to another address", FailureKind.REDIRECTED),
        (ndjson(b"<html>Welcome</html>\n"), "Is http://.* the right address", FailureKind.INVALID_RESPONSE),
        (ndjson(b'{"message": "no object"}\n'), "Is http://.* the right address", FailureKind.INVALID_RESPONSE),
        (ndjson(b"[" * 100_000 + b"\n"), "Is http://.* the right address", FailureKind.INVALID_RESPONSE),
        (ndjson(b"x" * (MAX_EVENT_BYTES + 1)), "a line of more than 1 MB", FailureKind.TOO_LONG),
        (
            chat(line(tool_calls=[call("f", {"n": n}) for n in range(MAX_CALLS + 1)])),
            "more than 32 tool calls",
            FailureKind.TOO_LONG,
        ),
        (chat(line(tool_calls=[call("f", {"a": "x" * 300_000})])), "256 KB of arguments", FailureKind.TOO_LONG),
        (Answer((b"x",), headers={"content-encoding": "gzip"}), "right address", FailureKind.INVALID_RESPONSE),
    ],
)
async def test_a_failure_is_reported_in_a_sentence(answer: Answer, says: str, kind: FailureKind) -> None:
    failed = await failure(answer)
    assert failed.kind is kind
    with pytest.raises(ModelError, match=says):
        raise failed


async def test_a_missing_model_is_reported_with_the_commands_that_pull_it() -> None:
    failed = await failure(FINE, model="qwen3:8b")
    assert "Ollama has no model qwen3:8b. Pull it with `antiphon models pull ollama:http" in str(failed)
    assert str(failed).endswith("#qwen3:8b` or `ollama pull qwen3:8b`.")
    assert (failed.retryable, failed.status) == (False, 404)


async def test_a_model_without_tools_is_reported() -> None:
    failed = await failure(FINE, models={"m:latest": Installed(frozenset({"completion"}))})
    assert "cannot call tools. Choose a model that can" in str(failed)


async def test_a_server_that_is_not_running_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        model = open_text_model(parse("ollama:qwen3"), {"OLLAMA_HOST": host})
        with pytest.raises(
            ModelError, match=rf"Failed to connect to Ollama at http://{host}\. Is it running\?"
        ) as failed:
            await all_of(ask(model))
        await model.aclose()
    assert (failed.value.kind, failed.value.retryable) == (FailureKind.UNREACHABLE, True)


async def test_a_silent_server_times_out() -> None:
    failed = await failure(ndjson(line("Once"), end=End.STALL), line_timeout_s=0.05)
    assert failed.kind is FailureKind.TIMEOUT


async def test_a_connection_that_breaks_before_the_first_line_is_retried_once() -> None:
    async with serve_ollama([HANG_UP, FINE]) as (server, model):
        assert TextDelta("Fine.") in await all_of(ask(model))
        assert len(server.requests) == 2


async def test_a_connection_that_breaks_later_is_not_retried() -> None:
    async with serve_ollama([ndjson(line("Once"), end=End.CUT), FINE]) as (server, model):
        with pytest.raises(ModelError):
            await all_of(ask(model))
        assert len(server.requests) == 1


async def test_the_key_is_sent_as_a_bearer_token() -> None:
    async with serve_ollama([FINE], env={"OLLAMA_API_KEY": "k1"}) as (server, model):
        await all_of(ask(model))
        assert server.requests[0].headers["authorization"] == "Bearer k1"


async def test_an_environment_proxy_is_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serve_ollama([FINE]) as (_, model):
        assert TextDelta("Fine.") in await all_of(ask(model))


async def test_ollama_is_reached_at_the_address_in_its_variable() -> None:
    async with ChatServer(Rules(lambda _: FINE).answer) as server:
        host = server.url.removeprefix("http://").removesuffix("/v1")
        model = open_text_model(parse("ollama:m"), {"OLLAMA_HOST": host})
        await all_of(ask(model))
        await model.aclose()
        assert (server.requests[0].path, server.requests[0].body["model"]) == ("/api/chat", "m")


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "antiphon.models.providers.ollama")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelError, match=r"pip install 'antiphon\[ollama\]'"):
        open_text_model(parse("ollama:qwen3"), {})


def test_the_openai_package_is_not_needed() -> None:
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "from antiphon.models.providers import open_text_model\n"
        "from antiphon.models.providers.references import parse\n"
        "print(open_text_model(parse('ollama:qwen3'), {}).profile.name)"
    )
    environment = {**os.environ, "PYTHONPATH": PYTHON_PATH}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("ollama:qwen3\n", "")
