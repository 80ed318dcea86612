# mypy: ignore-errors
"""MCP's own SDK: a low-level server and a client in one process. The server checks no argument against the schema.

`call` is what `Client(server)` does by default: it passes the request on without JSON-RPC.
`streams` sends JSON-RPC messages through streams in memory, as every client did before 2026.
"""

import json

from mcp import Client
from mcp.server import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from bench.peers.search import bare
from bench.workload import ARGUMENTS, PARAMETERS, RESULT, Call, compete

TEXT = json.dumps(RESULT)


async def list_tools(context, params) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="kb_search", input_schema=PARAMETERS)])


async def call_tool(context, params) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=TEXT)], structured_content=RESULT)


def calling(client: Client) -> Call:
    async def call(place: int) -> None:
        result = await client.call_tool("kb_search", ARGUMENTS[place])
        if result.is_error or result.structured_content != RESULT:
            raise RuntimeError(f"The call has failed: {result}")

    return call


async def main() -> None:
    server = Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)
    async with Client(server) as direct, Client(server, mode="legacy") as streams:
        # Without a listing, the client would fetch one to check the first result.
        await direct.list_tools()
        await streams.list_tools()
        await compete(bare, call=calling(direct), streams=calling(streams))
