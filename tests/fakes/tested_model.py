"""Chat servers that behave in different ways when a model is tested."""

import json
from typing import Any

from tests.fakes.chat_server import Answer, End, Request, call_delta, delta, refusal, stream, tokens


def models(**fields: Any) -> Answer:
    """The list of models, with one model that has these fields."""
    return refusal(200, {"object": "list", "data": [{"id": "m", "object": "model", **fields}]})


def say(text: str, request: Request, *, hidden: int = 0) -> Answer:
    """Words one by one, and their count. `hidden` tokens were not shown."""
    words = text.split()
    count = tokens(len(json.dumps(request.body)) // 4, len(words) + hidden)
    return stream(*(delta(content=f"{word} ") for word in words), delta("stop"), count)


def call(number: int, place: str) -> dict[str, Any]:
    function = {"name": "get_current_time", "arguments": json.dumps({"timezone": place})}
    return {"index": number, "id": f"call_012345678{number}", "type": "function", "function": function}


def places(request: Request) -> list[str]:
    """The places whose time is asked for, if there is one tool."""
    asked = request.messages[-1]["content"] if len(request.body.get("tools", ())) == 1 else ""
    return [place for place in ("Tokyo", "Lima") if place in asked]


def good(request: Request) -> Answer:
    if request.method == "GET":
        return models(max_model_len=32_768)
    if request.messages[-1]["role"] == "tool":
        return say("It is 21:47 in Tokyo.", request)
    if wanted := places(request):
        return stream(call_delta(*(call(number, place) for number, place in enumerate(wanted))), delta("tool_calls"))
    return say("Hello, I am a helpful assistant.", request)


def writes_calls(request: Request) -> Answer:
    """Like the small models that write calls as text."""
    if request.method == "POST" and request.messages[-1]["role"] != "tool" and (wanted := places(request)):
        written = [{"name": "get_current_time", "arguments": {"timezone": place}} for place in wanted]
        return say("".join(f"<tool_call>\n{json.dumps(each)}\n</tool_call>\n" for each in written), request)
    return good(request)


def never_calls(request: Request) -> Answer:
    if request.method == "GET":
        return refusal(404, {"error": "not found"})
    return stream(delta(content="I cannot know that."), delta("stop"))


def reasons(request: Request) -> Answer:
    if request.method == "GET":
        return models(meta={"n_ctx_train": 4_096})
    return say("Hello.", request, hidden=200)


def never_answers(request: Request) -> Answer:
    return models() if request.method == "GET" else stream(done=False, end=End.STALL)
