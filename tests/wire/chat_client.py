"""Talks to `/v1/chat/completions` with the unmodified openai SDK, before a server whose model a test scripts."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from antiphon.security.quota import Kind, Limit
from tests.fakes.chat_server import Answer, ScriptedChatServer, call_delta, delta, stream
from tests.fakes.toolbox import document, write_tool
from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_confirmation import write_garden

Messages = list[Any]

LIGHT: Final = {
    "type": "function",
    "function": {
        "name": "set_light",
        "description": "Switches a light of the client.",
        "parameters": {"type": "object", "properties": {"is_on": {"type": "boolean"}}, "required": ["is_on"]},
    },
}
SUM: Final = "what is 2 plus 3"
SUM_IS: Final = "2 plus 3 is 5."

BELL: Final = """\
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    with (Path(__file__).parent / "rung").open("a") as lines:
        lines.write("ding\\n")
    return ok({"rung": True}, spoken="The bell has rung.")
"""


def client_of(served: Served, key: str = "sk-local", **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{served.http}/v1", api_key=key, max_retries=0, **options)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def write_bell(folder: Path) -> Path:
    """A tool of the server that does something each time it runs, without asking."""
    return write_tool(
        folder / "tools",
        "ring_bell",
        category="action",
        sideEffects="writes",
        idempotent=False,
        parameters={"type": "object", "additionalProperties": False, "properties": {}},
        files={"handler.py": BELL, "doc.md": document("ring_bell", "{}")},
    )


def calling(*calls: tuple[str, Mapping[str, Any]], prefix: str = "upstream-call") -> Answer:
    """A message of the model behind the server with these calls."""
    made = [
        {
            "index": n,
            "id": f"{prefix}-{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for n, (name, args) in enumerate(calls)
    ]
    return stream(call_delta(*made, role="assistant"), delta("tool_calls"))


async def ask(client: AsyncOpenAI, messages: Messages, **options: Any) -> ChatCompletion:
    answer = await client.chat.completions.create(model="antiphon", messages=messages, **options)
    assert isinstance(answer, ChatCompletion)
    return answer


async def say(client: AsyncOpenAI, messages: Messages, **options: Any) -> str:
    """Asks, adds the answer to the messages as a client does, and returns it."""
    answer = (await ask(client, messages, **options)).choices[0]
    assert answer.finish_reason == "stop"
    text = answer.message.content or ""
    messages.append(assistant(text))
    return text


async def chunks_of(client: AsyncOpenAI, messages: Messages, **options: Any) -> list[ChatCompletionChunk]:
    streamed = await client.chat.completions.create(model="antiphon", messages=messages, stream=True, **options)
    assert isinstance(streamed, AsyncStream)
    return [chunk async for chunk in streamed]


def text_of(chunks: Sequence[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


class Upstream:
    """A server whose text model answers as a test tells it."""

    def __init__(self, served: Served, model: ScriptedChatServer, client: AsyncOpenAI, folder: Path) -> None:
        self.served = served
        self.model = model
        self.client = client
        self.folder = folder


@asynccontextmanager
async def serve_upstream(folder: Path, limits: Mapping[Kind, Limit] = UNLIMITED) -> AsyncIterator[Upstream]:
    write_bell(folder)
    write_garden(folder)
    async with ScriptedChatServer() as model:
        settings = {"text": f"openai:{model.url}#m", "local_first": False}
        with serve(folder, limits=limits, model=settings) as served:
            async with client_of(served) as client:
                yield Upstream(served, model, client, folder)


def rung(upstream: Upstream) -> int:
    path = upstream.folder / "tools" / "ring_bell" / "rung"
    return len(path.read_text().splitlines()) if path.exists() else 0
