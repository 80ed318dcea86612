"""Tool calls are charged to the quota of the connected user."""

from collections.abc import Sequence

from antiphon.protocol import server_messages as s
from antiphon.security.quota import Account, Kind, Limit, Quota, Rate
from antiphon.session.tool_runner import charge_to
from antiphon.tools.call import ToolCall
from antiphon.tools.tool import Tool
from antiphon.transcript import ToolMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.gates import Counted, make_tool

READ = ToolCall(None, "read_it", {})
ACCOUNT = Account(user="ann", address="192.0.2.7")


async def enter(servers: ScriptedServers, tools: Sequence[Tool], script: Sequence[object], *, burst: int) -> Client:
    """A client with a quota of `burst` tool calls at once, and one more every ten seconds."""
    client = await Client(servers.open(*tools, text=script)).enter()
    quota = Quota({Kind.TOOL_CALL: Limit(user=Rate(0.1, burst))})
    assert client.live is not None
    client.live.runner.charge(charge_to(quota, ACCOUNT, client.server.hub.clock))
    return client


async def test_a_tool_call_beyond_the_quota_is_not_run_and_the_model_gets_the_reason(servers: ScriptedServers) -> None:
    handler = Counted()
    client = await enter(servers, [make_tool("read_it", handler)], [[READ], "One.", [READ], "Two."], burst=1)
    await client.write("read it", seconds=0.1)
    await client.write("read it again", seconds=0.1)
    assert handler.runs == 1
    refused = client.last(s.ToolResult)
    assert not refused.ok
    assert (refused.result["error"]["type"], refused.result["error"]["retryable"]) == ("RATE_LIMIT", True)
    assert 9 < refused.result["error"]["retry_after_s"] <= 10
    received = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert received[-1].content == refused.result
    assert client.last(s.Response).text.strip() == "Two."


async def test_tool_calls_run_again_once_the_quota_refills(servers: ScriptedServers) -> None:
    handler = Counted()
    client = await enter(servers, [make_tool("read_it", handler)], [[READ], "One.", [READ], "Two."], burst=1)
    await client.write("read it", seconds=11)
    await client.write("read it again")
    assert handler.runs == 2


async def test_only_the_calls_of_a_message_within_the_quota_are_run(servers: ScriptedServers) -> None:
    handler = Counted()
    calls = [ToolCall(f"call_012345678{n}", "read_it", {"text": str(n)}) for n in range(3)]
    client = await enter(servers, [make_tool("read_it", handler)], [calls, "Done."], burst=2)
    await client.write("read all")
    assert handler.runs == 2
    assert sorted(result.ok for result in client.every(s.ToolResult)) == [False, True, True]


async def test_exempt_tools_are_never_refused(servers: ScriptedServers) -> None:
    handler = Counted()
    script = [[READ], "One.", [ToolCall(None, "describe_tool", {})], "Two."]
    client = await enter(servers, [make_tool("read_it"), make_tool("describe_tool", handler)], script, burst=1)
    await client.write("read it", seconds=0.1)
    await client.write("what is it", seconds=0.1)
    assert handler.runs == 1
