"""The connection to one MCP server: opened in the background, watched, and opened again with a back-off."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from enum import StrEnum
from functools import cache
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Final

from antiphon.config import McpServer
from antiphon.services.mcp.errors import McpServerError
from antiphon.services.mcp.http import Exchange, current_exchange, http_streams
from antiphon.services.mcp.results import to_failure, to_result, unavailable
from antiphon.services.mcp.stdio import stdio_streams
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.secrets import conceal
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool as ListedTool

CONNECT_S: Final = 60.0
"""How long a server may take to answer the handshake. The first start of a program may download it."""
LIST_S: Final = 20.0
FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 60.0
STABLE_S: Final = 30.0
"""A connection that has lasted this long was a success: the next back-off begins anew."""
RELIST_S: Final = 300.0
"""How often the tools are listed again, for servers that change them without telling."""
MAX_TOOLS: Final = 128
MAX_PAGES: Final = 20
PATIENCE_S: Final = 10.0
"""How long a call waits for a connection that is being opened. Its deadline may end it earlier."""
SESSION_GONE: Final = "Session terminated"
CONNECTION_CLOSED: Final = -32000

log = get_logger(__name__)


class State(StrEnum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"
    """It could not be reached, or it has ended. It is tried again later."""


TakeListing = Callable[[Sequence["ListedTool"]], Awaitable[None]]


class ServerConnection:
    def __init__(self, name: str, settings: McpServer, *, take: TakeListing, rng: Random) -> None:
        """`take` is given the tools whenever the server was asked for them."""
        self.name = name
        self.settings = settings
        self.state = State.CONNECTING
        self.problem: str | None = None
        """Why there is no connection."""
        self.protocol_version: str | None = None
        self.server_version: str | None = None
        self._take = take
        self._rng = rng
        self._client: Client | None = None
        self._settled = asyncio.Event()
        """Set while it is known whether the server can be used."""
        self._wake = asyncio.Event()
        """Set when the connection has ended, or when the tools have changed."""
        self._is_lost = False

    async def settle(self) -> None:
        """Returns when the attempt under way to reach the server has succeeded or failed."""
        await self._settled.wait()

    async def wait_briefly(self) -> None:
        """Waits for a connection that is being opened, within limits."""
        if self.state is State.CONNECTING:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._settled.wait()

    async def run(self) -> None:
        """Keeps the connection open until it is cancelled."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            connected_s: float | None = None
            try:
                async with self.open() as client:
                    connected_s = loop.time()
                    await self._serve(client)
            except Exception as error:
                self._lose(error)
            if connected_s is not None and loop.time() - connected_s > STABLE_S:
                failures = 0
            # Half of the wait is random, so that servers that ended together do not come back together.
            wait_s = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** min(failures, 10)) * self._rng.uniform(0.5, 1.0)
            failures += 1
            await asyncio.sleep(wait_s)
            self.state = State.CONNECTING
            self._settled.clear()

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[Client]":
        """Opens the connection once. Both generations of the protocol are negotiated."""
        # In a thread, since it takes most of a second.
        await asyncio.to_thread(import_module, "mcp")
        from mcp import Client
        from mcp_types import Implementation

        from antiphon import __version__

        self._is_lost = False
        self._wake.clear()
        client = Client(
            _watched(self._streams(), self._end),
            mode="auto",
            cache=None,
            read_timeout_seconds=CONNECT_S,
            message_handler=self._note,
            client_info=Implementation(name="antiphon", version=__version__),
        )
        async with client:
            self.protocol_version = client.protocol_version
            info = client.server_info
            self.server_version = None if info is None else f"{info.name} {info.version}".strip()
            yield client

    async def list_tools(self, client: "Client") -> "list[ListedTool]":
        """Lists the tools of a server, page by page, as far as the limits allow."""
        tools: list[ListedTool] = []
        cursor: str | None = None
        async with asyncio.timeout(LIST_S):
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None or len(tools) > MAX_TOOLS:
                    break
        if len(tools) > MAX_TOOLS:
            log.warning("mcp_tools_left_out", server=self.name, kept=MAX_TOOLS)
        return tools[:MAX_TOOLS]

    async def call(self, tool: str, args: dict[str, Any], *, writes: bool, timeout_s: float) -> ToolResult:
        """Has the server run a tool. Cancelling it tells the server that nobody waits any more."""
        client = self._client
        if client is None:
            return unavailable()
        from mcp import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams, InputRequiredResult
        from pydantic import ValidationError

        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=args))
        exchange = Exchange()
        token = current_exchange.set(exchange)
        try:
            # Not `client.call_tool`: it would check the answer against the server's own schema with regular
            # expressions of the server, which can take forever.
            answer = await client.session.send_request(request, _answer_type(), timeout_s)
        except MCPError as error:
            if error.message == SESSION_GONE:
                self._end()
            if error.code == CONNECTION_CLOSED:
                return unavailable(writes=writes)
            return to_failure(
                error.code,
                error.message,
                status=exchange.status if exchange.status != 200 else None,
                retry_after_s=exchange.retry_after_s,
                writes=writes,
            )
        except (ValidationError, ValueError, RecursionError):
            return unavailable("The server gave an answer that is not valid.", writes=writes)
        finally:
            current_exchange.reset(token)
        if isinstance(answer, InputRequiredResult):
            message = "The server asks for an input that cannot be given here."
            return fail(ErrorType.PERMANENT, message)
        return to_result(answer, writes=writes)

    async def _serve(self, client: "Client") -> None:
        """Reads the tools, again whenever they change, until the connection is lost."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while not self._is_lost:
                self._wake.clear()
                await self._take(await self.list_tools(client))
                if self._client is None:
                    self._client, self.state, self.problem = client, State.CONNECTED, None
                    self._settled.set()
                    log.info("mcp_server_connected", server=self.name, protocol=client.protocol_version)
                if self._is_lost:
                    break
                try:
                    async with asyncio.timeout(RELIST_S):
                        await self._wake.wait()
                except TimeoutError:
                    pass
            raise McpServerError("the connection has ended.")
        finally:
            self._client = None
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, client: "Client") -> None:
        """Waits for changes in the newer generation of the protocol, which tells them only to those who listen."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        capability = client.server_capabilities.tools
        while capability is not None and capability.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._wake.set()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(MAX_WAIT_S)
            self._wake.set()

    async def _note(self, message: object) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._wake.set()

    def _end(self) -> None:
        self._is_lost = True
        self._wake.set()

    def _lose(self, error: Exception) -> None:
        problem = explain(error)
        if (self.state, self.problem) != (State.WAITING, problem):
            log.warning("mcp_server_lost", server=self.name, problem=problem)
        self.state, self.problem = State.WAITING, problem
        self._settled.set()

    def _streams(self) -> "AbstractAsyncContextManager[Any]":
        settings = self.settings
        if settings.url:
            return http_streams(settings.url, _values(settings.headers))
        return stdio_streams(self.name, settings.command, settings.args, _values({name: name for name in settings.env}))


def _values(variables: Mapping[str, str]) -> dict[str, str]:
    """Replaces the names of variables by their values, which the log masks from now on."""
    missing = sorted({name for name in variables.values() if name not in os.environ})
    if missing:
        raise McpServerError(
            f"the environment variable {missing[0]} is not set. Set it, or remove it from the settings."
        )
    for name in variables.values():
        conceal(os.environ[name])
    return {key: os.environ[name] for key, name in variables.items()}


def explain(error: BaseException) -> str:
    """Returns the reason of a failure in a sentence. Groups of exceptions are the SDK's way to wrap a single one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case McpServerError():
            return str(error)
        case TimeoutError():
            return "it did not answer in time."
    told = " ".join(str(error).split())[:200] or type(error).__name__
    return told if told.endswith(".") else f"{told}."


@cache
def _answer_type() -> Any:
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


@asynccontextmanager
async def _watched(streams: "AbstractAsyncContextManager[Any]", on_end: Callable[[], None]) -> AsyncIterator[Any]:
    """Tells when a server has ended the connection: the SDK closes the stream that it reads from."""
    async with streams as (incoming, outgoing):
        yield _Watched(incoming, on_end), outgoing


class _Watched:
    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Any:
        return self._stream.__aiter__()

    async def __aenter__(self) -> "_Watched":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        self._on_end()
        return await self._stream.__aexit__(*error)
