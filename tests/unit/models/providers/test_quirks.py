"""How different servers stream one message, as bytes from a real socket."""

from typing import Any

import pytest

from antiphon.models.base import (
    CallRequested,
    Event,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TokensUsed,
)
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.chat_server import Answer, End, call_delta, delta, event, serve_model, stream, tokens

pytestmark = pytest.mark.real_time

PROMPT = Prompt("Be brief.", [UserMessage("hi")], [], Mode.TEXT)
OSLO = {"city": "Oslo"}
OSLO_JSON = '{"city":"Oslo"}'
WEATHER = ToolCall("call_A", "get_weather", OSLO)
LIGHT = ToolCall("call_B", "set_light", {})


def function(name: str | None = None, arguments: str | None = None) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments}
    return {"function": {key: value for key, value in given.items() if value is not None}}


def whole(id: str | None, name: str = "get_weather", arguments: str | None = OSLO_JSON, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def in_fragments(text: str, count: int) -> list[dict[str, Any]]:
    size = len(text) // count + 1
    return [call_delta({"index": 0, **function(arguments=text[n : n + size])}) for n in range(0, len(text), size)]


def in_bytes(answer: Answer) -> Answer:
    """The same, one byte at a time: every character and every line is cut."""
    return Answer(tuple(bytes([byte]) for byte in b"".join(answer.pieces)))


LONG = {"text": "e\u0301té " * 40}
LONG_JSON = '{"text":"' + LONG["text"] + '"}'

CALLS: dict[str, tuple[Answer, list[ToolCall]]] = {
    "OpenAI, two calls at once": (
        stream(
            call_delta({"index": 0, "id": "call_A", "type": "function", **function("get_weather", "")}, content=None),
            call_delta({"index": 0, **function(arguments='{"ci')}),
            call_delta({"index": 0, **function(arguments='ty":"Oslo"}')}),
            call_delta({"index": 1, "id": "call_B", "type": "function", **function("set_light", "")}),
            call_delta({"index": 1, **function(arguments="{}")}),
            delta("tool_calls"),
        ),
        [WEATHER, LIGHT],
    ),
    "Gemini, no index": (
        stream(call_delta(whole("call_A")), call_delta(whole("call_B", "set_light", "{}")), delta("stop")),
        [WEATHER, LIGHT],
    ),
    "old Ollama, every index 0": (
        stream(
            call_delta(whole("call_A", index=0), content=""),
            call_delta(whole("call_B", "set_light", "{}", index=0), content=""),
            delta("tool_calls"),
        ),
        [WEATHER, LIGHT],
    ),
    "vLLM, id and name said again with the end": (
        stream(
            call_delta({"index": 0, "id": "call_A", "type": "function", **function("get_weather", '{"city":')}),
            delta("tool_calls", tool_calls=[whole("call_A", arguments='"Oslo"}', index=0)]),
        ),
        [WEATHER],
    ),
    "llama.cpp, no arguments key": (
        stream(
            call_delta({"index": 0, "id": "call_A", "type": "function", **function("get_weather")}),
            call_delta({"index": 0, **function(arguments=OSLO_JSON)}),
            delta("tool_calls"),
        ),
        [WEATHER],
    ),
    "no id": (stream(call_delta(whole(None, index=0)), delta("tool_calls")), [ToolCall(None, "get_weather", OSLO)]),
    "an empty id": (stream(call_delta(whole("", index=0)), delta("stop")), [ToolCall(None, "get_weather", OSLO)]),
    "arguments null": (stream(call_delta(whole("call_B", "set_light", None, index=0)), delta("stop")), [LIGHT]),
    "arguments empty": (stream(call_delta(whole("call_B", "set_light", "", index=0)), delta("stop")), [LIGHT]),
    "finish_reason stop": (stream(call_delta(whole("call_A", index=0)), delta("stop")), [WEATHER]),
    "no finish_reason": (stream(call_delta(whole("call_A", index=0))), [WEATHER]),
    "no [DONE]": (stream(call_delta(whole("call_A", index=0)), delta("tool_calls"), done=False), [WEATHER]),
    "words and a call in the first chunk": (
        stream(call_delta(whole("call_A", index=0), content="One moment.")),
        [WEATHER],
    ),
    "a hundred fragments": (
        stream(call_delta({"index": 0, "id": "call_A", **function("note", "")}), *in_fragments(LONG_JSON, 100)),
        [ToolCall("call_A", "note", LONG)],
    ),
    "one byte at a time": (in_bytes(stream(call_delta(whole("call_A", index=0)))), [WEATHER]),
    "arguments that are no JSON": (
        stream(call_delta(whole("call_A", arguments="{city: Oslo}", index=0))),
        [ToolCall("call_A", "get_weather", "{city: Oslo}")],
    ),
}


async def reply(answer: Answer) -> list[Event]:
    async with serve_model([answer]) as (_, model):
        return [event async for event in model.reply(PROMPT)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("quirk", CALLS)
async def test_calls_are_parsed(quirk: str) -> None:
    answer, calls = CALLS[quirk]
    assert [event.call for event in await reply(answer) if isinstance(event, CallRequested)] == calls


@pytest.mark.parametrize("quirk", CALLS)
async def test_a_message_with_calls_waits_for_them_whatever_the_server_says(quirk: str) -> None:
    assert (await reply(CALLS[quirk][0]))[-1] == MessageComplete(StopReason.CALLS)


TEXTS = {
    "in pieces": stream(delta(role="assistant", content=""), delta(content="Grü"), delta(content="ße."), delta("stop")),
    "characters cut in two": in_bytes(stream(delta(content="Grüße."))),
    "raw UTF-8, cut in two": Answer(
        (event('{"choices":[{"delta":{"content":"Grü').rstrip()[:-1], b'\xbc\xc3\x9fe."}}]}\n\n', event("[DONE]"))
    ),
    "reasoning of Ollama": stream(delta(reasoning="Hm."), delta(content="Grüße.")),
    "reasoning of llama.cpp": stream(delta(reasoning_content="Hm."), delta(content="Grüße.", reasoning_content=None)),
    "comments that keep the line open": Answer(
        (
            b": ping\n\n",
            event(delta(content="Grü")),
            b": ping\n\n: ping\n\n",
            event(delta(content="ße.")),
            event("[DONE]"),
        )
    ),
    "lines that end with CRLF": Answer(
        (event(delta(content="Grüße.")).replace(b"\n", b"\r\n"), event("[DONE]").replace(b"\n", b"\r\n"))
    ),
    "lines that end with CR": Answer((event(delta("stop", content="Grüße.")).replace(b"\n", b"\r"),)),
    "CRLF, one byte at a time": in_bytes(
        Answer((event(delta("stop", content="Grüße.")).replace(b"\n", b"\r\n"),)),
    ),
    "data in two lines": Answer(
        ('data: {"choices":[{"finish_reason":"stop",\ndata: "delta":{"content":"Grüße."}}]}\n\n'.encode(),)
    ),
    "cut after the finish": stream(delta("stop", content="Grüße."), done=False, end=End.CUT),
    "chunks without choices": stream({"choices": []}, {"object": "x"}, {"choices": None}, delta(content="Grüße.")),
    "a finish without a delta": stream(delta(content="Grüße."), {"choices": [{"index": 0, "finish_reason": "stop"}]}),
    "no [DONE]": stream(delta("stop", content="Grüße."), done=False),
    "tool_calls null": stream(delta(content="Grüße.", tool_calls=None)),
    "finish_reason tool_calls without calls": stream(delta(content="Grüße."), delta("tool_calls")),
}


@pytest.mark.parametrize("quirk", TEXTS)
async def test_text_is_parsed(quirk: str) -> None:
    events = await reply(TEXTS[quirk])
    assert text_of(events) == "Grüße."
    assert events[-1] == MessageComplete(StopReason.DONE)


async def test_text_beside_a_call_comes_before_it() -> None:
    events = await reply(CALLS["words and a call in the first chunk"][0])
    assert events[:2] == [TextDelta("One moment."), CallRequested(WEATHER)]


async def test_tokens_are_counted_from_the_chunk_without_choices() -> None:
    events = await reply(stream(delta(content="Hi."), delta("stop"), tokens(5, 4)))
    assert events == [TextDelta("Hi."), TokensUsed(5, 4), MessageComplete(StopReason.DONE)]


async def test_tokens_counted_in_every_chunk_are_reported_once() -> None:
    counted = [{**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2)]
    assert [event for event in await reply(stream(*counted)) if isinstance(event, TokensUsed)] == [TokensUsed(5, 2)]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["Hi \ud83d", "\ude00!"], "Hi \U0001f600!"),
        (["Hi \ud83d\ude00!"], "Hi \U0001f600!"),
        (["Hi \ud83d", "!"], "Hi \ufffd!"),
        (["Hi \ud83d"], "Hi \ufffd"),
        (["\ude00", "\ud83d", "\ud83d", "\ude00"], "\ufffd\ufffd\U0001f600"),
    ],
)
async def test_characters_sent_in_halves_are_joined_or_replaced(pieces: list[str], text: str) -> None:
    assert text_of(await reply(stream(*(delta(content=piece) for piece in pieces)))) == text


async def test_half_characters_in_a_call_are_replaced() -> None:
    arguments = '{"city":"\\ud83d and \ud83d"}'
    given = whole("call_\ud83d", "get_\ude00", arguments, extra_content={"note": ["\ud83d"]})
    (called,) = [event.call for event in await reply(stream(call_delta(given))) if isinstance(event, CallRequested)]
    assert (called.id, called.name, called.args) == ("call_\ufffd", "get_\ufffd", {"city": "\ufffd and \ufffd"})
    assert called.extra["extra_content"] == {"note": ["\ufffd"]}


async def test_text_that_arrives_together_is_one_delta() -> None:
    together = b"".join(event(delta(content=word)) for word in ("Once ", "upon ", "a ", "time"))
    answer = Answer((together + event(call_delta(whole("call_A"))) + event(delta("stop", content=".")),))
    assert (await reply(answer))[:3] == [TextDelta("Once upon a time"), TextDelta("."), CallRequested(WEATHER)]


async def test_text_that_arrives_with_garbage_is_emitted_before_the_failure() -> None:
    answer = Answer((event(delta(content="Once ")) + event(delta(content="upon")) + event("{garbage"),))
    async with serve_model([answer]) as (_, model):
        events = model.reply(PROMPT)
        assert await anext(events) == TextDelta("Once upon")
        with pytest.raises(ModelError):
            await anext(events)
