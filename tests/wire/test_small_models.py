"""A small model behind a server: it writes its calls as text, thinks aloud, and talks through Ollama's own API."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.fakes import ollama_server as ollama
from tests.fakes.chat_server import Answer, ChatServer, Request, delta, stream
from tests.wire.caller import Caller, Message, call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

WRITTEN: Final = '{"name": "calculate", "arguments": {"expression": "6 * 7"}}'
FORMATS: Final = {
    "json": f"```json\n{WRITTEN}\n```",
    "tags": f"<tool_call>\n{WRITTEN}\n</tool_call>",
    "thought": f"<think>\nI should calculate.\n</think>\n\n<tools>\n{WRITTEN}\n</tools>",
    "unknown": '<tool_call>{"name": "multiply", "arguments": {"a": 6, "b": 7}}</tool_call>',
}


def pieces_of(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def reply_of(request: Request) -> str:
    """What the model says: it writes a call in the format that the user names, and then repeats the result."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return f"<think>Fine.</think>It gave {last['content']}"
    # The server warms the model with a message of its own.
    return FORMATS.get(last["content"], "Hello.")


def answer(request: Request) -> Answer:
    return stream(*(delta(content=piece) for piece in pieces_of(reply_of(request))))


def answer_as_ollama(request: Request) -> Answer:
    return ollama.chat(*map(ollama.line, pieces_of(reply_of(request))))


async def ask(caller: Caller, text: str) -> tuple[str, list[Message]]:
    """Everything that was said, and the tool calls."""
    await caller.send("text_message", text=text)
    await caller.until("response")
    said = "".join(message["text"] for message in caller.every("response_chunk"))
    return said, caller.every("tool_call")


@pytest.mark.parametrize("style", ["json", "tags", "thought"])
async def test_a_written_call_runs_and_only_the_answer_is_said(tmp_path: Path, style: str) -> None:
    async with ChatServer(answer) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                said, calls = await ask(caller, style)
    assert [each["name"] for each in calls] == ["calculate"]
    assert said.startswith("It gave {")
    assert "42" in said


async def test_a_written_call_to_a_tool_that_does_not_exist_is_refused_and_not_said(tmp_path: Path) -> None:
    async with ChatServer(answer) as model:
        with serve(tmp_path, model={"text": f"openai:{model.url}#m"}) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                said, _ = await ask(caller, "unknown")
    assert said.startswith("It gave {")
    assert "There is no tool called 'multiply'" in said


async def test_ollama_is_asked_through_its_own_api(tmp_path: Path) -> None:
    async with ChatServer(ollama.Rules(answer_as_ollama).answer) as model:
        url = model.url.removesuffix("/v1")
        settings: dict[str, Any] = {"model": {"text": f"ollama:{url}#m"}, "ollama": {"num_ctx": 8192}}
        with serve(tmp_path, **settings) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                said, calls = await ask(caller, "tags")
        first, second = model.requests[-2:]
    assert (len(calls), "42" in said) == (1, True)
    assert (first.path, first.body["options"]) == ("/api/chat", {"num_ctx": 8192})
    assert second.messages[-1]["tool_name"] == "calculate"


async def test_a_missing_model_is_explained_to_the_user(tmp_path: Path) -> None:
    async with ChatServer(ollama.Rules(answer_as_ollama).answer) as model:
        url = model.url.removesuffix("/v1")
        with serve(tmp_path, model={"text": f"ollama:{url}#qwen3"}) as served:
            async with call(served.url, {"mode": "text"}) as caller:
                await caller.send("text_message", text="tags")
                failed = await caller.until("error")
    assert "Ollama has no model qwen3. Pull it with" in failed["message"]
