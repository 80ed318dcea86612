"""A server whose model is on this machine: the model's server has read the prompt before the first request."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.chat_server import HANG_UP, ChatServer, words
from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

SKY = "why is the sky blue"


async def wait_for(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not happened():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


async def test_the_first_request_begins_with_the_prompt_that_was_read_at_the_start(tmp_path: Path) -> None:
    async with ChatServer(lambda request: words("Because of the air.")) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m"}) as served:
            await wait_for(lambda: bool(server.requests))
            async with call(served.url, {"mode": "text"}) as caller:
                await caller.ask(SKY)
    read, asked = server.requests
    assert read.body["max_tokens"] == 1
    assert "max_tokens" not in asked.body
    assert read.messages[0] == asked.messages[0]
    assert read.body["tools"] == asked.body["tools"]


async def test_a_server_that_cannot_be_warmed_does_not_keep_ours_from_starting(tmp_path: Path) -> None:
    async with ChatServer(lambda request: HANG_UP) as server:
        with serve(tmp_path, model={"text": f"openai:{server.url}#m"}) as served:
            await wait_for(lambda: bool(server.requests))
            async with call(served.url, {"mode": "text"}) as caller:
                assert "Tokyo" in await caller.ask("what time is it in Tokyo")
            await wait_for(lambda: "model_not_warmed" in served.log)
    assert served.log.count("model_not_warmed") == 1
