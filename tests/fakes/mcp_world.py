"""MCP servers for tests in processes of their own, and a gate with their tools."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from antiphon.clock import SystemClock
from antiphon.config import McpServer
from antiphon.services.mcp.servers import McpServers, open_mcp
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Registry, Snapshot
from antiphon.tools.result import ToolResult
from antiphon.tools.session import ToolSession
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool

CHILD: Final = Path(__file__).parent / "mcp_child.py"
PLAIN: Final = Path(__file__).parent / "mcp_plain.py"
PATIENCE_S: Final = 15.0


class McpWorld:
    """A gate with the tools of one server, `far`, and what a test does with it."""

    def __init__(self, folder: Path, servers: McpServers, executor: Executor, database: MemoryDatabase) -> None:
        self.folder = folder
        self.servers = servers
        self.executor = executor
        self.database = database

    @property
    def registry(self) -> Registry:
        return self.executor.registry

    @property
    def connection(self) -> Any:
        return self.servers.connections["far"]

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    def session(self, mode: Mode = Mode.TEXT) -> ToolSession:
        return ToolSession("s1", "ann", self.registry.snapshot(), mode=mode)

    async def call(self, tool: str, mode: Mode = Mode.TEXT, **args: Any) -> ToolResult:
        session = self.session(mode)
        self.executor.begin_turn(session)
        return await self.executor.execute(ToolCall(None, tool, args), session)

    async def until(self, is_true: Callable[[], Any]) -> None:
        await until(is_true)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def settings_of(folder: Path, kind: str, **changes: Any) -> McpServer:
    (folder / "description").write_text("Says it again.")
    if kind == "http":
        return McpServer(url=f"http://127.0.0.1:{(folder / 'port').read_text()}/mcp", **changes)
    program = (str(PLAIN), str(folder)) if kind == "plain" else (str(CHILD), str(folder), kind)
    return McpServer(command=sys.executable, args=program, **changes)


@asynccontextmanager
async def mcp_world(
    folder: Path,
    kind: str = "plain",
    *,
    database: MemoryDatabase | None = None,
    own: tuple[Tool, ...] = (),
    settles: bool = True,
    settings: McpServer | None = None,
    **changes: Any,
) -> AsyncIterator[McpWorld]:
    """Opens the gate. `own` are tools that the registry has already; `changes` are settings of the server."""
    database = database or MemoryDatabase()
    tools = {tool.id: tool for tool in own}
    registry = Registry(folder, "production", Snapshot("1.0.0", tools, "1.0.0"))
    server = settings or settings_of(folder, kind, **changes)
    clock = SystemClock()
    async with open_mcp({"far": server}, registry, database.mcp_pins, clock=clock, rng=Random(1)) as servers:
        assert servers is not None
        executor = Executor(
            registry,
            calls=database.calls,
            confirmations=database.confirmations,
            audit=database.audit,
            limits=database.limits,
            clock=clock,
        )
        world = McpWorld(folder, servers, executor, database)
        try:
            if settles:
                async with asyncio.timeout(PATIENCE_S):
                    await servers.settle()
            yield world
        finally:
            await executor.aclose()


@asynccontextmanager
async def http_server(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs a server over HTTP. Its port is kept in the folder, so that another one can take its place."""
    (folder / "pid").unlink(missing_ok=True)
    (folder / "description").write_text("Says it again.")
    process = await asyncio.create_subprocess_exec(sys.executable, str(CHILD), str(folder), "http")
    try:
        await until(lambda: _listens(folder / "port"))
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(is_true: Callable[[], Any]) -> None:
    """Waits for other processes, of which nothing but the outcome can be seen."""
    deadline_s = asyncio.get_running_loop().time() + PATIENCE_S
    while not is_true():
        assert asyncio.get_running_loop().time() < deadline_s, "it did not happen in time"
        await asyncio.sleep(0.02)


def _listens(port: Path) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(port.read_text())), 1).close()
    except (OSError, ValueError):
        return False
    return True
