"""A server with a model elsewhere: what the offline assistant knows is answered without it."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.chat_server import HANG_UP, ChatServer, words
from tests.fakes.toolbox import HANDLER, PREVIEW, write_tool
from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

TEXT = {"mode": "text"}
TOKYO = "what time is it in Tokyo"
SKY = "why is the sky blue"


def shape(messages: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """The role of each message, and whether it has calls."""
    return [(message["role"], "tool_calls" in message) for message in messages if message["role"] != "system"]


def requests_of(server: ChatServer) -> list[list[dict[str, Any]]]:
    """The conversations that the server was sent, without what only warms it up."""
    return [request.messages for request in server.requests if request.messages[-1]["content"] == SKY]


async def test_a_known_request_never_reaches_the_server_and_the_next_one_does_with_both_in_its_history(
    tmp_path: Path,
) -> None:
    async with ChatServer(lambda request: words("Because of the air.")) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m"}) as served:
            async with call(served.url, TEXT) as caller:
                answer = await caller.ask(TOKYO)
                assert "Tokyo" in answer
                assert not any(TOKYO in str(request.messages) for request in server.requests)
                assert (await caller.ask(SKY)).strip() == "Because of the air."
    [seen] = requests_of(server)
    assert shape(seen) == [("user", False), ("assistant", True), ("tool", False), ("assistant", False), ("user", False)]
    assert [message["content"] for message in seen if message["role"] == "user"] == [TOKYO, SKY]
    assert seen[-2]["content"] == answer


async def test_a_known_request_is_answered_while_the_model_is_down(tmp_path: Path) -> None:
    async with ChatServer(lambda request: HANG_UP) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m"}) as served:
            async with call(served.url, TEXT) as caller:
                await caller.send("text_message", text=SKY)
                assert "cannot be reached" in (await caller.until("error"))["message"]
                await caller.until("state", state="idle")
                assert "Tokyo" in await caller.ask(TOKYO)


@pytest.mark.parametrize(("reply", "outcome"), [("yes", "Hello, Ada."), ("no", "All right, I won't do that.")])
async def test_a_call_that_needs_approval_is_asked_for_and_told_without_the_model(
    tmp_path: Path, reply: str, outcome: str
) -> None:
    write_tool(
        tmp_path / "tools",
        "greet",
        category="action",
        sideEffects="writes",
        requiresConfirmation=True,
        files={
            "handler.py": HANDLER + PREVIEW,
            "sentences.yaml": 'data:\n  - sentences: ["say hello to {name}"]\nslot_examples: {name: Ada}\n',
        },
    )
    async with ChatServer(lambda request: words("I was asked.")) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m"}) as served:
            async with call(served.url, TEXT) as caller:
                assert await caller.ask("say hello to Ada") == "Greet Ada?"
                assert await caller.ask(reply) == outcome
                assert (await caller.ask(SKY)).strip() == "I was asked."
    assert len(requests_of(server)) == 1


async def test_with_local_first_off_every_request_reaches_the_server(tmp_path: Path) -> None:
    async with ChatServer(lambda request: words("It is noon.")) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m", "local_first": False}) as served:
            async with call(served.url, TEXT) as caller:
                assert (await caller.ask(TOKYO)).strip() == "It is noon."
