"""Connects to one MCP server once, for the operator: does it answer, and what has changed?"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.config import McpServer
from antiphon.services.mcp.connection import ServerConnection, explain
from antiphon.services.mcp.definitions import Definition, UnusableTool, decode, define
from antiphon.services.mcp.errors import McpServerError
from antiphon.services.mcp.servers import check_installed
from antiphon.storage.mcp_pins import McpPin

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

TRIAL_S: Final = 30.0
MAX_CHANGE_CHARS: Final = 4_000
LEAD_CHARS: Final = 60
"""How much of a text is shown before the first difference, if the whole text is too long."""


@dataclass(frozen=True, slots=True)
class TriedTool:
    name: str
    state: str
    changes: Sequence[str] = ()
    is_problem: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    server: str
    """What the server calls itself, and its version."""
    protocol: str
    seconds: float
    tools: Sequence[TriedTool]


async def try_server(name: str, server: McpServer, pins: Sequence[McpPin], limit_s: float = TRIAL_S) -> Trial:
    """Raises `McpServerError` if the server cannot be used, and `McpMissing` without the package."""
    check_installed({name: server.model_copy(update={"enabled": True})})
    started_s = asyncio.get_running_loop().time()
    connection = ServerConnection(name, server, take=_ignore, rng=Random(0))
    try:
        async with asyncio.timeout(limit_s), connection.open() as client:
            listed = await connection.list_tools(client)
            seconds = asyncio.get_running_loop().time() - started_s
    except Exception as error:
        raise McpServerError(f"{name} cannot be used: {explain(error)}") from None
    known = {pin.tool: pin for pin in pins}
    tools = [_compare(tool, known.pop(tool.name, None)) for tool in listed]
    tools += [TriedTool(pin.tool, "the server no longer offers it") for pin in known.values()]
    return Trial(connection.server_version or name, connection.protocol_version or "?", seconds, tools)


async def _ignore(listed: "Sequence[ListedTool]") -> None:
    pass


def _compare(listed: "ListedTool", pin: McpPin | None) -> TriedTool:
    try:
        made = define(listed)
    except UnusableTool as error:
        return TriedTool(listed.name[:100], f"it cannot be offered: {error}", is_problem=True)
    if pin is None:
        return TriedTool(made.name, "new; it will be approved when the server first uses it")
    if pin.digest == made.digest:
        return TriedTool(made.name, "as approved")
    return TriedTool(
        made.name,
        "changed since it was approved; it is not offered until `antiphon mcp approve`",
        list_changes(decode(pin.definition), made),
        is_problem=True,
    )


def list_changes(old: Definition, new: Definition) -> list[str]:
    """Shows each field that has changed, as it was and as it is. What is too long is shown where it differs."""
    changes = []
    for field in old.__struct_fields__:
        before, after = (msgspec.json.encode(getattr(each, field), order="sorted").decode() for each in (old, new))
        if before != after:
            shortest = min(len(before), len(after))
            same = next((at for at in range(shortest) if before[at] != after[at]), shortest)
            changes += [f"- {field}: {_cut(before, same)}", f"+ {field}: {_cut(after, same)}"]
    return changes


def _cut(text: str, same: int) -> str:
    """Cuts a text that is too long. `same` is the length of its beginning that has not changed."""
    if len(text) <= MAX_CHANGE_CHARS:
        return text
    start = max(0, same - LEAD_CHARS)
    end = start + MAX_CHANGE_CHARS
    return (
        f"{'…' if start else ''}{text[start:end]}{f'… ({len(text) - end} more characters)' if end < len(text) else ''}"
    )
