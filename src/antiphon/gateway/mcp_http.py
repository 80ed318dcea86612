"""`/mcp`: this server as an MCP server, over streamable HTTP in both generations of the protocol.

Callers are admitted by the same rules as everywhere. The package `mcp` is imported only if it is installed; without it
the route says what is missing.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from antiphon import __version__
from antiphon.gateway.connected import RETRY_AFTER_S, STOPPING
from antiphon.gateway.deps import GatewayDeps, address_of
from antiphon.gateway.mcp_calls import ADMITTED, McpCaller, McpCalls
from antiphon.security.admission import AdmissionRefused, RefusalKind
from antiphon.security.quota import Account
from antiphon.security.tokens import bearer
from antiphon.session.nodes import Nodes
from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable
from antiphon.telemetry.log import get_logger
from antiphon.tools.executor import Executor

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"
MAX_BODY_BYTES: Final = 256 * 1024
MAX_SESSIONS: Final = 1_000
IDLE_S: Final = 30 * 60.0
REFUSED: Final = -32000
MISSING: Final = "This server cannot speak MCP. Its operator must run: pip install 'antiphon[mcp]'"
INSTRUCTIONS: Final = (
    "Antiphon's own tools, and three that reach the user in their conversation with Antiphon: `say`, `ask` and "
    "`notify`. A tool may need the approval of the person at your client."
)
_STATUSES: Final = {
    RefusalKind.UNAUTHENTICATED: 401,
    RefusalKind.BLOCKED: 403,
    RefusalKind.WRONG_TOKENS: 429,
    RefusalKind.FULL: 429,
}

log = get_logger(__name__)


class McpEndpoint:
    """The route. `running` must be entered while it serves."""

    def __init__(
        self,
        deps: GatewayDeps,
        executor: Executor,
        nodes: Nodes,
        *,
        stopping: asyncio.Event,
        must_end: asyncio.Event,
    ) -> None:
        """`stopping` is set when the server begins to stop, `must_end` when the time for finishing is over."""
        self._deps = deps
        self._stopping = stopping
        self._must_end = must_end
        self._posts: set[asyncio.Task[Any]] = set()
        self._calls = McpCalls(deps, executor, nodes)
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._task: asyncio.Task[None] | None = None

    def routes(self) -> list[BaseRoute]:
        return [Route(PATH, self)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    async def drain(self, time_left_s: float) -> None:
        """Waits for the calls under way, at most this long."""
        if self._posts:
            await asyncio.wait(set(self._posts), timeout=time_left_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if find_spec("mcp") is None:
            await _refuse(501, MISSING)(scope, receive, send)
            return
        if self._stopping.is_set():
            await _refuse(503, STOPPING, RETRY_AFTER_S)(scope, receive, send)
            return
        try:
            scope[ADMITTED] = admitted = await self._admit(request)
        except AdmissionRefused as refused:
            await _refuse(_STATUSES[refused.kind], str(refused), refused.retry_after_s)(scope, receive, send)
            return
        except StoreUnavailable as error:
            log.error("request_failed", path=PATH, error=str(error))
            await _refuse(503, STORE_UNAVAILABLE, RETRY_AFTER_S)(scope, receive, send)
            return
        manager = await self._start()
        scope["user"] = _sdk_user(admitted.caller.user)
        await self._serve(manager, scope, receive, send)

    async def _start(self) -> "StreamableHTTPSessionManager":
        """Returns the SDK's part. The first request makes it: a server that nobody uses by MCP saves 20 MB."""
        async with self._starting:
            if self._manager is None:
                # In a thread, since the import takes most of a second.
                manager = await asyncio.to_thread(_make_manager, self._calls)
                started = asyncio.Event()
                # In a task of its own, so that a failure in it cannot cancel the server.
                self._task = asyncio.create_task(self._run(manager, started))
                await started.wait()
                self._manager = manager
            return self._manager

    async def _admit(self, request: Request) -> McpCaller:
        address = address_of(request)
        key = bearer(request.headers.get("authorization"))
        caller = await self._deps.admission.admit(key, address=address, route=PATH)
        return McpCaller(caller, Account(user=caller.user, address=address))

    async def _serve(self, manager: "StreamableHTTPSessionManager", scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request until it is complete, or until the server stops: a stream of events never completes."""
        serving = asyncio.create_task(manager.handle_request(scope, receive, send))
        is_call = scope["method"] == "POST"
        ending = asyncio.create_task((self._must_end if is_call else self._stopping).wait())
        if is_call:
            self._posts.add(serving)
            serving.add_done_callback(self._posts.discard)
        try:
            await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
        finally:
            serving.cancel()
            ending.cancel()
            await asyncio.wait([serving, ending])

    @staticmethod
    async def _run(manager: "StreamableHTTPSessionManager", started: asyncio.Event) -> None:
        async with manager.run():
            started.set()
            await asyncio.Event().wait()


def _make_manager(calls: McpCalls) -> "StreamableHTTPSessionManager":
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    return StreamableHTTPSessionManager(
        _make_server(calls),
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
        session_idle_timeout=IDLE_S,
    )


def _make_server(calls: McpCalls) -> "Server[Any]":
    from mcp.server import Server
    from mcp_types import ListToolsResult

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=list(calls.list_tools()))

    return Server(
        "antiphon",
        version=__version__,
        title="Antiphon",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=calls.input_schema,
        on_list_tools=list_tools,
        on_call_tool=calls.call,
    )


def _sdk_user(user: str) -> Any:
    """Makes the SDK bind its sessions to our users, so that nobody can use another's."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=user, scopes=[]))


def _refuse(status: int, message: str, retry_after_s: float | None = None) -> Response:
    """Makes the refusal of a request, in the form that the protocol's clients show."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": REFUSED, "message": message}}
    headers = {} if retry_after_s is None else {"Retry-After": str(math.ceil(retry_after_s))}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(body), status, headers, "application/json")
