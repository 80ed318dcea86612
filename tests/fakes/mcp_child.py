"""An MCP server for tests, made with the SDK: over stdio in one generation of the protocol or the other, or over HTTP.

Arguments: a folder, and "modern", "legacy" or "http". The folder has `description`, the description of the tool `echo`;
the server writes `pid` and `cancelled` into it, and over HTTP `port`.
"""

import os
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

FOLDER, KIND = Path(sys.argv[1]), sys.argv[2]
READS = types.ToolAnnotations(read_only_hint=True)
BUS = InMemorySubscriptionBus()

Context = ServerRequestContext[Any, Any]


def tool(name: str, description: str = "Does it.", **properties: str) -> types.Tool:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return types.Tool(name=name, description=description, input_schema=schema, annotations=READS)


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            tool("echo", (FOLDER / "description").read_text(), text="string"),
            tool("slow", seconds="number"),
            tool("huge", bytes="integer"),
            tool("Change It!", description="Changes the description of echo.", to="string"),
            tool("facts"),
        ]
    )


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    args = params.arguments or {}
    match params.name:
        case "echo":
            return text(args["text"])
        case "facts":
            return types.CallToolResult(content=[types.TextContent(text="{}")], structured_content={"sky": "blue"})
        case "slow":
            try:
                await anyio.sleep(args["seconds"])
            except BaseException:
                (FOLDER / "cancelled").touch()
                raise
            return text("At last.")
        case "huge":
            return text("x" * args["bytes"])
        case "Change It!":
            (FOLDER / "description").write_text(args["to"])
            if KIND == "legacy":
                await ctx.session.send_tool_list_changed()
            else:
                await BUS.publish(ToolsListChanged())
            return text("Changed.")
    raise MCPError(types.INVALID_PARAMS, "Unknown tool.")


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)])


async def main() -> None:
    server = Server(
        "test-server",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    (FOLDER / "pid").write_text(str(os.getpid()))
    if KIND == "http":
        await serve_http(server)
        return
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (incoming, outgoing):
        if KIND == "legacy":
            await serve_loop(server, incoming, outgoing, lifespan_state={}, init_options=options)
        else:
            await server.run(incoming, outgoing, options)


async def serve_http(server: Server[Any]) -> None:
    import uvicorn

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port = FOLDER / "port"
    listening.bind(("127.0.0.1", int(port.read_text()) if port.exists() else 0))
    port.write_text(str(listening.getsockname()[1]))
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(config).serve([listening])


anyio.run(main)
