# mypy: ignore-errors
"""FastMCP: a decorated function, called by a `Client` that holds the server in memory."""

from fastmcp import Client, FastMCP

from bench.peers.search import bare, kb_search
from bench.workload import ARGUMENTS, RESULT, compete


async def main() -> None:
    server = FastMCP("bench")
    server.tool(kb_search)
    async with Client(server) as client:

        async def call(place: int) -> None:
            if (await client.call_tool("kb_search", ARGUMENTS[place])).data != RESULT:
                raise RuntimeError("The call has failed.")

        await compete(bare, call=call)
