"""`antiphon mcp …`: the MCP servers of the settings, their tools, and the approval of tools that have changed."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from antiphon.cli.data import open_data, plain
from antiphon.cli.options import ConfigOption, JsonOption, UsageError, settings_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antiphon.config import McpServer, Settings
    from antiphon.services.mcp.trial import Trial
    from antiphon.storage.mcp_pins import McpPin
    from antiphon.tools.tool import Tool

app = typer.Typer(no_args_is_help=True)

NONE: Final = "There are no MCP servers in the settings. Add a table [mcp.servers.NAME] to antiphon.toml."

ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", help="Its name in [mcp.servers.NAME].")]


@app.command("list")
def list_servers(as_json: JsonOption = False, config: ConfigOption = None) -> None:
    """List the MCP servers and their tools, and which of them are not offered, and why."""
    settings = settings_for(config)
    rows = asyncio.run(_list(settings))
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not settings.mcp_servers:
        typer.echo(NONE)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("server", "tool", "id", "modes", "confirmation", "state")
    for row in rows:
        for tool in row["tools"] or [{}]:
            state = tool.get("state") or row["state"]
            cells = (row["server"], tool.get("name", ""), tool.get("id", ""), ", ".join(tool.get("modes", ())))
            asks = "yes" if tool.get("requires_confirmation") else ""
            table.add_row(*(escape(plain(cell)) for cell in (*cells, asks, state)))
    Console(highlight=False).print(table)
    if any(tool["state"].startswith("quarantined") for row in rows for tool in row["tools"]):
        typer.echo(
            "Look at what has changed with `antiphon mcp test SERVER`, and approve it with `antiphon mcp approve`."
        )


@app.command("test")
def try_one(name: ServerArgument, config: ConfigOption = None) -> None:
    """Connect to a server once, and show its tools and what has changed. Nothing is stored or approved."""
    settings = settings_for(config)
    server = _find(settings, name)
    trial = asyncio.run(_try(settings, name, server))
    typer.echo(f"{name}: {plain(trial.server)} answers (MCP {trial.protocol}, {trial.seconds:.1f} s).")
    for tool in trial.tools:
        typer.echo(f"  {plain(tool.name)}: {tool.state}")
        for line in tool.changes:
            typer.echo(f"    {plain(line)}")
    if any(tool.is_problem for tool in trial.tools):
        raise typer.Exit(1)


@app.command()
def approve(
    name: ServerArgument,
    tool: Annotated[
        str | None, typer.Argument(metavar="[TOOL]", help="The server's name for the tool. [default: all that changed]")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Approve tools as the server last saw them, so that they are offered again, and show what has been approved.

    A running server notices it within seconds.
    """
    settings = settings_for(config)
    _find(settings, name)
    approved, known = asyncio.run(_approve(settings, name, tool))
    if tool is not None and tool not in known:
        tools = ", ".join(plain(each) for each in known) or "none yet"
        raise UsageError(f"{name} has no tool {tool!r}. Its tools are: {tools}.")
    if not approved:
        typer.echo("There was nothing to approve.")
    for each, changes in approved.items():
        typer.echo(f"Approved {plain(each)} of {name}.")
        for line in changes:
            typer.echo(f"    {plain(line)}")


def _find(settings: "Settings", name: str) -> "McpServer":
    server = settings.mcp_servers.get(name)
    if server is None:
        known = ", ".join(settings.mcp_servers)
        raise UsageError(
            f"there is no MCP server {name!r} in the settings. {f'There are: {known}.' if known else NONE}"
        )
    return server


async def _list(settings: "Settings") -> "list[dict[str, Any]]":
    from antiphon.compose import build_tools
    from antiphon.services.mcp.servers import choose_tools

    async with open_data(settings) as database:
        pins = await database.mcp_pins.list()
    own = {tool.tool_id for tool in build_tools(settings).artifact.tools}
    chosen, left_out = choose_tools(settings.mcp_servers, pins, own)
    tools = {tool.id: tool for tool in chosen}
    reasons = {(each.server, each.tool): each.reason for each in left_out}
    return [
        {
            "server": name,
            "address": server.url or " ".join((server.command, *server.args)),
            "state": "not connected yet" if server.enabled else "switched off in the settings",
            "tools": [_describe(pin, tools, reasons) for pin in pins if pin.server == name and server.enabled],
        }
        for name, server in settings.mcp_servers.items()
    ]


def _describe(pin: "McpPin", tools: "Mapping[str, Tool]", reasons: "Mapping[tuple[str, str], str]") -> "dict[str, Any]":
    from antiphon.services.mcp.definitions import id_of
    from antiphon.services.mcp.servers import QUARANTINED

    id, reason = id_of(pin.server, pin.tool), reasons.get((pin.server, pin.tool))
    described: dict[str, Any] = {"name": pin.tool, "id": id, "state": reason or "offered"}
    if reason == QUARANTINED:
        described["state"] = f"quarantined: {reason}"
    if reason is None:
        spec = tools[id].spec
        described |= {"modes": list(map(str, spec.allowed_modes)), "requires_confirmation": spec.requires_confirmation}
    return described


async def _try(settings: "Settings", name: str, server: "McpServer") -> "Trial":
    from antiphon.services.mcp.trial import try_server

    if not settings.keeps_data:
        return await try_server(name, server, ())
    async with open_data(settings) as database:
        return await try_server(name, server, await database.mcp_pins.list(name))


async def _approve(
    settings: "Settings", name: str, tool: str | None
) -> "tuple[Mapping[str, Sequence[str]], Sequence[str]]":
    """Returns what has changed in each tool that was approved, and the names of all tools of the server."""
    from antiphon.services.mcp.definitions import decode
    from antiphon.services.mcp.trial import list_changes

    async with open_data(settings) as database:
        before = {pin.tool: pin for pin in await database.mcp_pins.list(name)}
        approved = await database.mcp_pins.approve(name, tool)
        after = {pin.tool: pin for pin in await database.mcp_pins.list(name)}
    changes = {each: list_changes(decode(before[each].definition), decode(after[each].definition)) for each in approved}
    return changes, list(before)
