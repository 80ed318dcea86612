"""Which sessions MCP clients can talk to: only those whose clients can be told something unasked."""

import asyncio
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from antiphon.authoring.adapters import adapt_for_mcp
from antiphon.gateway.mcp_session_tools import session_tools
from antiphon.protocol import server_messages as s
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult
from antiphon.tools.session import ToolSession
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.realtime_client import RealtimeClient
from tests.fakes.scripted_live import WAITING

CALLS: dict[str, dict[str, Any]] = {"say": {"text": "Hi."}, "ask": {"question": "Hm?"}, "notify": {"text": "Hi."}}


async def use(server: Server, name: str, **args: Any) -> ToolResult:
    executor = server.gate.executor
    snapshot = executor.registry.snapshot().with_tools(session_tools(server.nodes, adapt_for_mcp))
    session = ToolSession(id="mcp-1", user="ann", snapshot=snapshot, zone=ZoneInfo("UTC"))
    return await executor.execute(ToolCall(None, name, args), session)


@pytest.mark.parametrize("name", CALLS)
async def test_a_client_that_asks_for_every_answer_itself_cannot_be_talked_to(
    servers: ScriptedServers, name: str
) -> None:
    server = servers.open(text=[], voice=[], profile=WAITING)
    detection = {"type": "server_vad", "create_response": False}
    client = await RealtimeClient.enter(server, audio={"input": {"turn_detection": detection}})
    result = await use(server, name, **CALLS[name])
    assert result.error is not None
    assert result.error.type is ErrorType.SESSION_INACTIVE
    assert client.every("response.created") == []


async def test_a_client_that_has_no_message_for_notices_is_not_sent_one(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    page = await Client(server).enter()
    await RealtimeClient.enter(server)
    result = await use(server, "notify", text="The oven is hot.")
    assert result.data["session_id"] == page.last(s.Session).session_id
    assert page.last(s.Notice).text == "The oven is hot."


async def test_a_call_of_another_protocol_is_spoken_to(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    client = await RealtimeClient.enter(server)
    assert (await use(server, "say", text="Dinner is ready.")).ok
    await asyncio.sleep(5)
    assert client.transcript == "Dinner is ready."
