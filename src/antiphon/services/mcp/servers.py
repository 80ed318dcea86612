"""All MCP servers of the settings: which of their tools are in the registry, and why others are not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.clock import Clock
from antiphon.config import McpServer
from antiphon.services.mcp.connection import ServerConnection
from antiphon.services.mcp.definitions import Definition, UnusableTool, decode, define, id_of
from antiphon.services.mcp.errors import McpMissing
from antiphon.services.mcp.remote_tool import ORIGIN_PREFIX, make_tool
from antiphon.services.mcp.results import unavailable
from antiphon.storage.base import StorageError
from antiphon.storage.mcp_pins import McpPin, McpPinStore
from antiphon.telemetry.log import get_logger
from antiphon.tools.registry import Registry
from antiphon.tools.result import ToolResult
from antiphon.tools.tool import Tool

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

CHECK_S: Final = 2.0
"""How soon a running server notices that the operator has approved a tool."""
GRACE_S: Final = 5.0
"""How much longer than the gate the SDK waits for an answer, so that the gate decides."""
DISABLED: Final = "switched off in the settings"
QUARANTINED: Final = "it has changed since it was approved"
NOT_OFFERED: Final = "the server no longer offers it"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that is not in the registry, and why."""

    server: str
    tool: str
    reason: str


CallServer = Callable[[str, Definition, dict[str, Any], bool], Awaitable[ToolResult]]
"""Has a server run a tool with these arguments; the last tells whether the tool writes."""


async def _refuse(server: str, definition: Definition, args: dict[str, Any], writes: bool) -> ToolResult:
    return unavailable()


def choose_tools(
    servers: Mapping[str, McpServer], pins: Sequence[McpPin], taken: Collection[str], call: CallServer = _refuse
) -> tuple[list[Tool], list[LeftOut]]:
    """Decides which pinned tools join the registry. `taken` are the ids that other tools have."""
    chosen: dict[str, Tool] = {}
    left_out = []
    for pin in pins:
        server = servers.get(pin.server)
        if server is None or not server.enabled:
            continue
        policy = server.policy(pin.tool)
        id = id_of(pin.server, pin.tool)
        reason = None
        if not pin.is_offered:
            reason = NOT_OFFERED
        elif not policy.enabled:
            reason = DISABLED
        elif pin.is_quarantined:
            reason = QUARANTINED
        elif id in taken or id in chosen:
            owner = "another tool" if id in taken else f"a tool of {chosen[id].origin.removeprefix(ORIGIN_PREFIX)}"
            reason = f"{owner} has the id {id}"
        else:
            try:
                chosen[id] = make_tool(pin.server, decode(pin.definition), policy, partial(call, pin.server))
            except (UnusableTool, msgspec.DecodeError) as error:
                reason = str(error)
        if reason is not None:
            left_out.append(LeftOut(pin.server, pin.tool, reason))
    return list(chosen.values()), left_out


class McpServers:
    """The servers of the settings that are enabled, and their tools in the registry."""

    def __init__(
        self, settings: Mapping[str, McpServer], registry: Registry, pins: McpPinStore, *, clock: Clock, rng: Random
    ) -> None:
        self._settings = {name: server for name, server in settings.items() if server.enabled}
        self._registry = registry
        self._store = pins
        self._clock = clock
        self._pins: Sequence[McpPin] = ()
        self._left_out: list[LeftOut] = []
        self.connections = {
            name: ServerConnection(name, server, take=partial(self._take, name), rng=rng)
            for name, server in self._settings.items()
        }

    async def load(self) -> None:
        """Puts the tools that are known from earlier into the registry, before any server has answered."""
        await self._read_pins()

    async def settle(self) -> None:
        """Returns when every server was tried once."""
        await asyncio.gather(*(connection.settle() for connection in self.connections.values()))

    async def run(self) -> None:
        """Keeps all servers connected until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for connection in self.connections.values():
                group.create_task(connection.run())
            group.create_task(self._watch_approvals())

    async def call(self, server: str, definition: Definition, args: dict[str, Any], writes: bool) -> ToolResult:
        """Runs a tool, unless it has been quarantined since the session got it."""
        # Before the pin is looked at: a server that has just been reached may have changed the tool.
        await self.connections[server].wait_briefly()
        pin = next((each for each in self._pins if (each.server, each.tool) == (server, definition.name)), None)
        if pin is None or pin.is_quarantined or not pin.is_offered or pin.digest != definition.digest:
            return unavailable("This tool is not available: the server has changed it.")
        timeout_s = self._settings[server].policy(definition.name).timeout_ms / 1000 + GRACE_S
        return await self.connections[server].call(definition.name, args, writes=writes, timeout_s=timeout_s)

    async def _take(self, server: str, listed: "Sequence[ListedTool]") -> None:
        """Compares what a server lists with its pins, and updates the registry."""
        now_ms = self._clock.now_ms()
        seen = set()
        try:
            for tool in listed:
                try:
                    made = define(tool)
                except UnusableTool as error:
                    log.warning("mcp_tool_left_out", server=server, tool=tool.name[:100], reason=str(error))
                    continue
                seen.add(made.name)
                await self._store.see(server, made.name, made.digest, made.encoded, now_ms)
            for pin in await self._store.list(server):
                if pin.tool not in seen and pin.is_offered:
                    await self._store.miss(server, pin.tool)
            await self._read_pins()
        except StorageError as error:
            # The tools stay as they are. They are listed again in a few minutes.
            log.error("mcp_pins_not_stored", server=server, error=str(error))

    async def _read_pins(self) -> None:
        self._pins = await self._store.list()
        runtime = {tool.id for tool in self._registry.tools.values() if tool.origin.startswith(ORIGIN_PREFIX)}
        taken = self._registry.tools.keys() - runtime
        tools, left_out = choose_tools(self._settings, self._pins, taken, self.call)
        for each in left_out:
            if each not in self._left_out and each.reason != DISABLED:
                log.warning("mcp_tool_left_out", server=each.server, tool=each.tool, reason=each.reason)
        self._left_out = left_out
        if self._registry.set_runtime_tools(tools):
            log.info("mcp_tools_changed", version=self._registry.version, tools=len(tools))

    async def _watch_approvals(self) -> None:
        """Looks for approvals, which the operator's command puts into the store."""
        while True:
            await asyncio.sleep(CHECK_S)
            if any(pin.is_quarantined for pin in self._pins):
                try:
                    await self._read_pins()
                except StorageError as error:
                    log.warning("mcp_pins_not_read", error=str(error))


@asynccontextmanager
async def open_mcp(
    settings: Mapping[str, McpServer], registry: Registry, pins: McpPinStore, *, clock: Clock, rng: Random
) -> AsyncIterator[McpServers | None]:
    """Connects to the servers in the background; None if there are none. Nothing waits for a slow server."""
    if not any(server.enabled for server in settings.values()):
        yield None
        return
    check_installed(settings)
    servers = McpServers(settings, registry, pins, clock=clock, rng=rng)
    await servers.load()
    running = asyncio.create_task(servers.run())
    try:
        yield servers
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def check_installed(settings: Mapping[str, McpServer]) -> None:
    if find_spec("mcp") is None:
        name = next(name for name, server in settings.items() if server.enabled)
        raise McpMissing(f"[mcp.servers.{name}] needs the package mcp. Run: pip install 'antiphon[mcp]'")
