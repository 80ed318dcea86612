"""Calls of a client's own tools, when the client leaves."""

import asyncio

import pytest

from antiphon.gateway.client_calls import ClientCall, ClientCalls
from antiphon.tools.errors import ToolError


async def test_a_call_that_waits_fails_when_the_client_leaves() -> None:
    calls = ClientCalls(lambda call: None)
    running = asyncio.create_task(calls._call("ping", {}))
    await asyncio.sleep(0)
    calls.close()
    with pytest.raises(ToolError, match="left before it answered"):
        await running


async def test_a_call_after_the_client_has_left_fails_at_once() -> None:
    sent: list[ClientCall] = []
    calls = ClientCalls(sent.append)
    calls.close()
    with pytest.raises(ToolError, match="The client has left"):
        await calls._call("ping", {})
    assert sent == []
