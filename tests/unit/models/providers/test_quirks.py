"""How different servers stream one message, as bytes from a real socket through the SDK's HTTP client."""

from dataclasses import dataclass
from typing import Any

import pytest

from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
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
NO_ID = ToolCall(None, "get_weather", OSLO)


def function(name: str | None = None, arguments: str | None = None) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments}
    return {"function": {key: value for key, value in given.items() if value is not None}}


def whole(id: str | None, name: str = "get_weather", arguments: str | None = OSLO_JSON, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def begun(name: str = "get_weather", arguments: str | None = "", id: str = "call_A", index: int = 0) -> dict[str, Any]:
    """The first fragment of a call."""
    return call_delta({"index": index, "id": id, "type": "function", **function(name, arguments)})


def more(arguments: str, index: int = 0) -> dict[str, Any]:
    """A later fragment of a call."""
    return call_delta({"index": index, **function(arguments=arguments)})


def in_fragments(text: str, count: int) -> list[dict[str, Any]]:
    size = len(text) // count + 1
    return [more(text[n : n + size]) for n in range(0, len(text), size)]


def in_bytes(answer: Answer) -> Answer:
    """The same, one byte at a time: every character and every line is cut."""
    return Answer(tuple(bytes([byte]) for byte in b"".join(answer.pieces)))


def ended_by(end: bytes, answer: Answer) -> Answer:
    return Answer(tuple(piece.replace(b"\n", end) for piece in answer.pieces))


LONG = {"text": "e\u0301té " * 40}
LONG_JSON = '{"text":"' + LONG["text"] + '"}'
GREETING = "Grüße."
SAID = delta(content=GREETING)


@dataclass(frozen=True)
class Quirk:
    """A server's answer, and what is made of it: text and calls, or a failure after the text."""

    answer: Answer
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    fails: FailureKind | None = None


def says(answer: Answer) -> Quirk:
    return Quirk(answer, GREETING)


def calls(answer: Answer, *made: ToolCall, text: str = "") -> Quirk:
    return Quirk(answer, text, made)


def fails(answer: Answer, kind: FailureKind, text: str = "") -> Quirk:
    return Quirk(answer, text, fails=kind)


QUIRKS: dict[str, Quirk] = {
    # Tool calls.
    "OpenAI: two calls in fragments, then usage": calls(
        stream(
            begun(),
            more('{"ci'),
            more('ty":"Oslo"}'),
            begun("set_light", id="call_B", index=1),
            more("{}", index=1),
            delta("tool_calls"),
            tokens(5, 4),
        ),
        WEATHER,
        LIGHT,
    ),
    "Gemini: no index, one whole call per chunk": calls(
        stream(call_delta(whole("call_A")), call_delta(whole("call_B", "set_light", "{}")), delta("stop")),
        WEATHER,
        LIGHT,
    ),
    "old Ollama: index 0 for every call": calls(
        stream(
            call_delta(whole("call_A", index=0), content=""),
            call_delta(whole("call_B", "set_light", "{}", index=0), content=""),
            delta("tool_calls"),
        ),
        WEATHER,
        LIGHT,
    ),
    "old Ollama: no index, and no id": calls(stream(call_delta(whole(None)), call_delta(whole(None))), NO_ID, NO_ID),
    "Ollama: whole calls with rising indexes, then usage": calls(
        stream(
            call_delta(whole("call_A", index=0), role="assistant", content=""),
            call_delta(whole("call_B", "set_light", "{}", index=1), role="assistant", content=""),
            delta("tool_calls"),
            tokens(5, 4),
        ),
        WEATHER,
        LIGHT,
    ),
    "vLLM: id and name repeated with the end": calls(
        stream(
            begun(arguments='{"city":'), delta("tool_calls", tool_calls=[whole("call_A", arguments='"Oslo"}', index=0)])
        ),
        WEATHER,
    ),
    "vLLM: id missing": calls(
        stream(call_delta({"index": 0, **function("get_weather", "")}), more(OSLO_JSON), delta("tool_calls")), NO_ID
    ),
    "vLLM: no finish_reason after whole calls": calls(stream(begun(), more(OSLO_JSON), finish=None), WEATHER),
    "vLLM: finish_reason stop after calls, and a stop_reason": calls(
        stream(
            call_delta(whole("call_A", index=0)),
            {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "stop_reason": None}]},
        ),
        WEATHER,
    ),
    "llama.cpp: no arguments key at first, timings at the end": calls(
        stream(begun(arguments=None), more(OSLO_JSON), {**delta("tool_calls"), "timings": {"prompt_n": 1}}), WEATHER
    ),
    "id null": calls(stream(call_delta(whole(None, index=0))), NO_ID),
    "id empty": calls(stream(call_delta(whole("", index=0))), NO_ID),
    "arguments null": calls(stream(call_delta(whole("call_B", "set_light", None, index=0))), LIGHT),
    "arguments empty": calls(stream(call_delta(whole("call_B", "set_light", "", index=0))), LIGHT),
    "no [DONE]": calls(stream(call_delta(whole("call_A", index=0)), delta("tool_calls"), done=False), WEATHER),
    "words and a call in one chunk": calls(
        stream(call_delta(whole("call_A", index=0), content="One moment.")), WEATHER, text="One moment."
    ),
    "a hundred fragments": calls(
        stream(begun("note"), *in_fragments(LONG_JSON, 100)), ToolCall("call_A", "note", LONG)
    ),
    "a call, one byte at a time": calls(in_bytes(stream(call_delta(whole("call_A", index=0)))), WEATHER),
    "arguments that are not JSON": calls(
        stream(call_delta(whole("call_A", arguments="{city: Oslo}", index=0))),
        ToolCall("call_A", "get_weather", "{city: Oslo}"),
    ),
    # Text.
    "text in pieces": says(stream(delta(role="assistant", content=""), delta(content="Grü"), delta(content="ße."))),
    "characters cut in two": says(in_bytes(stream(SAID))),
    "raw UTF-8, cut in two": says(
        Answer(
            (
                event('{"choices":[{"delta":{"content":"Grü').rstrip()[:-1],
                b'\xbc\xc3\x9fe."},"finish_reason":"stop"}]}\n\n',
            )
        )
    ),
    "reasoning in a field of its own (Ollama)": says(stream(delta(reasoning="Hm."), SAID)),
    "reasoning in a field of its own (llama.cpp, vLLM)": says(
        stream(delta(reasoning_content="Hm."), delta(content=GREETING, reasoning_content=None))
    ),
    "reasoning within the text": says(stream(delta(content=f"<think>\nHm.\n</think>\n\n{GREETING}"))),
    "reasoning within the text, one character at a time": says(
        stream(*(delta(content=char) for char in f"<think>Hm. < </thin</think>\n{GREETING}"))
    ),
    "reasoning before a call": calls(
        stream(delta(content="<think>Hm.</think>\n\n"), call_delta(whole("call_A", index=0))), WEATHER
    ),
    "comments that keep the line open": says(
        Answer(
            (b": ping\n\n", event(delta(content="Grü")), b": ping\n\n: ping\n\n", event(delta("stop", content="ße.")))
        )
    ),
    "lines that end with CRLF": says(ended_by(b"\r\n", stream(SAID))),
    "lines that end with CR": says(ended_by(b"\r", stream(SAID))),
    "CRLF, one byte at a time": says(in_bytes(ended_by(b"\r\n", stream(SAID)))),
    "data in two lines": says(
        Answer(('data: {"choices":[{"finish_reason":"stop",\ndata: "delta":{"content":"Grüße."}}]}\n\n'.encode(),))
    ),
    "cut after the finish": says(stream(delta("stop", content=GREETING), done=False, end=End.CUT)),
    "chunks without choices": says(stream({"choices": []}, {"object": "x"}, {"choices": None}, SAID)),
    "a finish without a delta": says(stream(SAID, {"choices": [{"index": 0, "finish_reason": "stop"}]})),
    "text without [DONE]": says(stream(delta("stop", content=GREETING), done=False)),
    "tool_calls null": says(stream(delta(content=GREETING, tool_calls=None))),
    "finish_reason tool_calls without calls": says(stream(SAID, delta("tool_calls"))),
    # Failures.
    "an error in mid-stream": fails(
        stream(SAID, {"error": {"message": "boom"}}), FailureKind.SERVER_ERROR, text=GREETING
    ),
    "an error in a choice (OpenRouter)": fails(
        stream(SAID, {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "down"}}]}),
        FailureKind.SERVER_ERROR,
        text=GREETING,
    ),
    "an error in an array (Gemini)": fails(
        stream(SAID, [{"error": {"code": 503, "message": "overloaded"}}]), FailureKind.SERVER_ERROR, text=GREETING
    ),
    "a quota in mid-stream (Gemini)": fails(
        stream([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]), FailureKind.RATE_LIMITED
    ),
    "the connection cut in mid-stream": fails(
        stream(SAID, done=False, end=End.CUT), FailureKind.UNREACHABLE, text=GREETING
    ),
    "the end of the stream in mid-answer": fails(stream(SAID, done=False), FailureKind.CUT_OFF, text=GREETING),
    "finish_reason error (OpenRouter)": fails(stream(SAID, delta("error")), FailureKind.CUT_OFF, text=GREETING),
    "[DONE] in mid-answer": fails(stream(SAID, finish=None), FailureKind.CUT_OFF, text=GREETING),
    "[DONE] before the arguments of a call": fails(stream(begun(), finish=None), FailureKind.CUT_OFF),
    "[DONE] within the arguments of a call": fails(stream(begun(), more('{"ci'), finish=None), FailureKind.CUT_OFF),
    "[DONE] within the second of two calls": fails(
        stream(call_delta(whole("call_A", index=0)), begun(id="call_B", index=1), finish=None), FailureKind.CUT_OFF
    ),
    "the limit of tokens within a call": fails(stream(begun(), more('{"ci'), delta("length")), FailureKind.CUT_OFF),
}


async def reply(answer: Answer) -> list[Event]:
    async with serve_model([answer]) as (_, model):
        return [event async for event in model.reply(PROMPT)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=QUIRKS.keys())
async def test_every_server_is_understood(quirk: Quirk) -> None:
    events, failed = list[Event](), None
    async with serve_model([quirk.answer]) as (_, model):
        try:
            async for event in model.reply(PROMPT):
                events.append(event)
        except ModelError as error:
            failed = error.kind
    made = [event.call for event in events if isinstance(event, CallRequested)]
    assert (text_of(events), made, failed) == (quirk.text, list(quirk.calls), quirk.fails)
    ends = [event for event in events if isinstance(event, MessageComplete)]
    reason = StopReason.CALLS if made else StopReason.DONE
    assert ends == ([] if quirk.fails else [MessageComplete(reason)])


async def test_text_beside_a_call_comes_before_it() -> None:
    events = await reply(QUIRKS["words and a call in one chunk"].answer)
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
