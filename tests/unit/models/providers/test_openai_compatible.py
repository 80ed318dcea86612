"""The requests of the client, and the start and end of a stream."""

import asyncio
import json
import sys
from typing import Any

import pytest
from structlog.testing import capture_logs

from antiphon.models.base import CallRequested, Event, ModelError, Prompt, TextDelta, TextModel
from antiphon.models.providers import open_text_model
from antiphon.models.providers.openai_compatible import UNSIGNED
from antiphon.models.providers.references import Provider, parse
from antiphon.models.text_live import text_factory
from antiphon.protocol.client_messages import TextMessage
from antiphon.protocol.server_messages import Response
from antiphon.tools.call import Keys, ToolCall, canonical
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.calls import Client, Server
from tests.fakes.chat_server import HANG_UP, Answer, End, call_delta, delta, refusal, serve_model, stream, words
from tests.fakes.gates import Counted, make_tool

pytestmark = pytest.mark.real_time

HELLO = UserMessage("hello")
SIGNATURE = {"google": {"prepared_signature": "Zm9v"}}
HALF = stream(delta(content="Once"), done=False, end=End.STALL)


def ask(model: TextModel, *messages: Message, tools: Any = ()) -> Any:
    return model.reply(Prompt("Be brief.", messages or (HELLO,), tools, Mode.TEXT))


async def all_of(events: Any) -> list[Event]:
    return [event async for event in events]


async def sent(*messages: Message, provider: Provider = Provider.OPENAI, tools: Any = ()) -> dict[str, Any]:
    """The request body for this conversation."""
    async with serve_model([words("Fine.")], provider=provider) as (server, model):
        await all_of(ask(model, *messages, tools=tools))
        body: dict[str, Any] = server.requests[0].body
        return body


def weather(args: Any, extra: Any = None, id: str = "call_A") -> AssistantMessage:
    return AssistantMessage(calls=(CallMade(id, "get_weather", args, extra),))


async def arguments_sent(args: Any) -> Any:
    body = await sent(HELLO, weather(args), ToolMessage("call_A", "get_weather", "x"))
    return json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"])


async def test_a_conversation_is_sent_in_chat_completions_format() -> None:
    body = await sent(HELLO, weather({"city": "Oslo"}), ToolMessage("call_A", "get_weather", {"c": 3}), HELLO)
    call = {"id": "call_A", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_A", "content": '{"c":3}'},
        {"role": "user", "content": "hello"},
    ]


async def test_a_stream_with_token_usage_is_requested() -> None:
    body = await sent(HELLO)
    assert (body["model"], body["stream"], body["stream_options"]) == ("m", True, {"include_usage": True})


async def test_text_beside_calls_is_sent_with_them() -> None:
    said = AssistantMessage("Let me see.", (CallMade("call_A", "get_weather", {}),))
    body = await sent(HELLO, said, ToolMessage("call_A", "get_weather", "x"))
    assert body["messages"][2]["content"] == "Let me see."


async def test_an_empty_message_is_not_sent() -> None:
    body = await sent(HELLO, AssistantMessage(""), HELLO)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "user"]


async def test_a_text_result_is_sent_unchanged() -> None:
    body = await sent(HELLO, weather({}), ToolMessage("call_A", "get_weather", "cold"))
    assert body["messages"][-1]["content"] == "cold"


async def test_a_call_without_arguments_is_sent_with_an_empty_object() -> None:
    assert await arguments_sent({}) == {}


@pytest.mark.parametrize("args", ["{city: Oslo}", "", ["Oslo"], None])
async def test_arguments_that_are_not_an_object_are_wrapped_in_one(args: Any) -> None:
    assert await arguments_sent(args) == {"invalid_arguments": args}


async def test_tools_are_sent_unchanged() -> None:
    schema = make_tool("read_it").provider_schemas["openai_chat"]
    assert (await sent(HELLO, tools=[schema]))["tools"] == [schema]


async def test_without_tools_the_field_is_omitted() -> None:
    assert "tools" not in await sent(HELLO)


async def test_extra_content_from_gemini_is_sent_back_with_its_call() -> None:
    signed = {"id": "fn_12345678", "function": {"name": "get_weather", "arguments": "{}"}, "extra_content": SIGNATURE}
    plain = {"id": "fn_87654321", "function": {"name": "set_light", "arguments": "{}"}}
    answers = [stream(call_delta(signed), call_delta(plain)), words("Done.")]
    async with serve_model(answers, provider=Provider.GEMINI) as (server, model):
        calls = [event.call for event in await all_of(ask(model)) if isinstance(event, CallRequested)]
        made = tuple(CallMade(call.id or "", call.name, call.args, call.extra) for call in calls)
        results = [ToolMessage(call.id, call.name, "x") for call in made]
        await all_of(ask(model, HELLO, AssistantMessage(calls=made), *results))
        first, second = server.requests[1].messages[2]["tool_calls"]
    assert first["extra_content"] == SIGNATURE
    assert "extra_content" not in second


async def test_extra_content_from_another_model_is_not_sent() -> None:
    made = weather({}, {"model": "gemini:other", "extra_content": SIGNATURE})
    body = await sent(HELLO, made, ToolMessage("call_A", "get_weather", "x"))
    assert "extra_content" not in body["messages"][2]["tool_calls"][0]


async def test_a_call_that_gemini_did_not_sign_is_marked_unsigned() -> None:
    body = await sent(HELLO, weather({}), ToolMessage("call_A", "get_weather", "x"), provider=Provider.GEMINI)
    assert body["messages"][2]["tool_calls"][0]["extra_content"] == UNSIGNED


async def test_the_key_is_sent_as_a_bearer_token() -> None:
    async with serve_model([words("Fine.")], env={"OPENAI_API_KEY": "k1"}) as (server, model):
        await all_of(ask(model))
        assert server.requests[0].headers["authorization"] == "Bearer k1"


async def test_without_a_key_no_token_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of another mapping")
    async with serve_model([words("Fine.")]) as (server, model):
        await all_of(ask(model))
        assert "authorization" not in server.requests[0].headers


async def test_an_environment_proxy_is_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serve_model([words("Fine.")]) as (_, model):
        assert TextDelta("Fine. ") in await all_of(ask(model))


async def test_thoughts_that_were_spoken_are_logged() -> None:
    async with serve_model([stream(delta(content="Hm.\n</think>\n\nFine."))]) as (_, model):
        with capture_logs() as lines:
            await all_of(ask(model))
    assert [line["event"] for line in lines] == ["thoughts_were_spoken"]


async def test_text_arrives_while_the_rest_is_still_being_generated() -> None:
    async with serve_model([HALF]) as (_, model):
        events = ask(model)
        assert await anext(events) == TextDelta("Once")
        await events.aclose()


async def test_closing_the_events_closes_the_stream() -> None:
    async with serve_model([HALF]) as (server, model):
        events = ask(model)
        await anext(events)
        await events.aclose()
        await asyncio.wait_for(server.left.wait(), 5)


async def test_cancelling_the_reader_closes_the_stream() -> None:
    async with serve_model([HALF]) as (server, model):
        reader = asyncio.create_task(all_of(ask(model)))
        await server.stalled.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await asyncio.wait_for(server.left.wait(), 5)


async def test_a_connection_that_breaks_before_the_first_chunk_is_retried() -> None:
    async with serve_model([HANG_UP, words("Fine.")]) as (server, model):
        assert TextDelta("Fine. ") in await all_of(ask(model))
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answers", "requests"),
    [
        ([HANG_UP, HANG_UP, words("Fine.")], 2),
        ([stream(delta(content="Once"), done=False, end=End.CUT), words("Fine.")], 1),
        ([refusal(429), words("Fine.")], 1),
        ([refusal(503), words("Fine.")], 1),
        ([stream({"error": {"message": "boom"}}), words("Fine.")], 1),
        ([stream(done=False, end=End.STALL), words("Fine.")], 1),
    ],
)
async def test_nothing_else_is_retried(answers: list[Answer], requests: int) -> None:
    async with serve_model(answers, chunk_timeout_s=0.2) as (server, model):
        with pytest.raises(ModelError):
            await all_of(ask(model))
        assert len(server.requests) == requests


def test_a_model_is_known_by_the_name_in_the_settings() -> None:
    model = open_text_model(parse("openai:gpt-5"), {"OPENAI_API_KEY": "k1"})
    assert (model.profile.name, model.profile.needs_network) == ("openai:gpt-5", True)


def test_a_model_on_this_machine_needs_no_network() -> None:
    assert not open_text_model(parse("ollama:qwen3"), {}).profile.needs_network


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "antiphon.models.providers.openai_compatible")
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelError, match=r"pip install 'antiphon\[openai\]'") as missing:
        open_text_model(parse("openai:http://box/v1#m"), {})
    assert not missing.value.retryable


class Talk:
    """A turn with a model over HTTP, its tools behind the gate."""

    def __init__(self, model: TextModel, *tools: Any) -> None:
        self._server = Server(*tools, models={Mode.TEXT: text_factory(model)})
        self._client = Client(self._server)

    async def say(self, text: str) -> str:
        await self._client.enter()
        await self._client.say(TextMessage(text), seconds=0.01)
        assert self._client.live is not None
        await self._client.live.runner.rest()
        await self._server.aclose()
        return self._client.last(Response).text.strip()


def calling(*calls: tuple[str | None, str]) -> Answer:
    """Calls of read_it, each with an id and arguments."""
    parts = [
        {"index": n, "id": id, "type": "function", "function": {"name": "read_it", "arguments": arguments}}
        for n, (id, arguments) in enumerate(calls)
    ]
    return stream(call_delta(*parts), delta("tool_calls"))


async def test_a_call_runs_through_the_gate_and_its_result_is_returned() -> None:
    async with serve_model([calling(("call_0123456789", '{"text":"a"}')), words("It is one.")]) as (server, model):
        assert await Talk(model, make_tool("read_it")).say("read a") == "It is one."
        assert [tool["function"]["name"] for tool in server.requests[0].body["tools"]] == ["read_it"]
        _, _, made, told = server.requests[1].messages
    assert made["tool_calls"][0]["function"] == {"name": "read_it", "arguments": '{"text":"a"}'}
    assert told == {"role": "tool", "tool_call_id": "call_0123456789", "content": '{"run":1}'}


async def test_a_model_may_call_step_by_step() -> None:
    steps = [calling((f"call_0123456_{n}", json.dumps({"text": str(n)}))) for n in range(3)]
    handler = Counted()
    async with serve_model([*steps, words("Done.")]) as (server, model):
        assert await Talk(model, make_tool("read_it", handler)).say("read all") == "Done."
        roles = [message["role"] for message in server.requests[-1].messages]
    assert handler.seen == [{"text": "0"}, {"text": "1"}, {"text": "2"}]
    assert roles == ["system", "user", *["assistant", "tool"] * 3]


async def test_results_of_calls_without_ids_are_matched_to_their_calls() -> None:
    async with serve_model([calling((None, '{"text":"a"}'), ("", '{"text":"b"}')), words("Done.")]) as (server, model):
        await Talk(model, make_tool("read_it")).say("read both")
        _, _, made, *told = server.requests[1].messages
    ids = [call["id"] for call in made["tool_calls"]]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in told] == ids


async def test_arguments_that_are_not_json_are_refused_by_the_gate_with_examples() -> None:
    handler = Counted()
    async with serve_model([calling(("call_0123456789", "{text: a}")), words("Sorry.")]) as (server, model):
        await Talk(model, make_tool("read_it", handler)).say("read a")
        told = json.loads(server.requests[1].messages[-1]["content"])
    assert handler.runs == 0
    assert told["error"]["type"] == "VALIDATION"
    assert "```args" in told["error"]["details"]["examples"]


def test_extra_content_is_not_part_of_a_calls_keys() -> None:
    bare, extra = (ToolCall("call_0123456789", "f", {}, extra=value) for value in (None, {"s": 1}))
    keys = [Keys(call, canonical(call.args), 1) for call in (bare, extra)]
    assert len({(key.provider, key.fingerprint, key.content) for key in keys}) == 1
