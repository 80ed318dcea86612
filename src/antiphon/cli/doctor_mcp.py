"""What the doctor says about the MCP servers of the settings."""

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from antiphon.cli.findings import Finding, Findings
from antiphon.errors import AntiphonError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.config import McpServer, Settings
    from antiphon.storage.mcp_pins import McpPin

LIMIT_S: Final = 15.0


def check_mcp(settings: "Settings") -> Findings:
    """Checks each server: programs are started, and servers on this machine are asked."""
    for name, server in settings.mcp_servers.items():
        if server.enabled:
            yield from _check(settings, name, server)
        else:
            yield Finding(True, f"mcp: {name} is switched off in the settings")


def _check(settings: "Settings", name: str, server: "McpServer") -> Findings:
    from antiphon.security.origin import is_loopback
    from antiphon.services.mcp.trial import try_server

    pins = asyncio.run(_read_pins(settings, name))
    waiting = [pin.tool for pin in pins if pin.is_quarantined]
    if waiting:
        advice = f"Look at it with `antiphon mcp test {name}`, then run `antiphon mcp approve {name}`."
        yield Finding(False, f"mcp: {name} has changed {', '.join(waiting)}, which is quarantined. {advice}")
    if server.url and not is_loopback(urlsplit(server.url).hostname or ""):
        yield Finding(True, f"mcp: {name} (on another machine, so it was not checked)")
        return
    try:
        trial = asyncio.run(try_server(name, server, pins, LIMIT_S))
    except AntiphonError as error:
        yield Finding(False, f"mcp: {error}")
        return
    yield Finding(True, f"mcp: {name} answers with {len(trial.tools)} tools (MCP {trial.protocol})")


async def _read_pins(settings: "Settings", name: str) -> "Sequence[McpPin]":
    """Reads the pins. A database that is not there yet has none, and is not created."""
    from antiphon.compose import open_stores

    path = settings.database_path
    if not settings.keeps_data or (path is not None and not path.exists()):
        return ()
    database = await open_stores(settings)
    try:
        return await database.mcp_pins.list(name)
    finally:
        await database.aclose()
