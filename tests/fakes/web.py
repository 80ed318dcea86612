"""The HTTP routes of a server in the same process, and two clients: one waits for the answer, one streams it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Message

from antiphon.models.text_live import text_factory
from antiphon.security.admission import Caller
from antiphon.server.deps import HttpDeps, OperatorDeps, ToolChanges
from antiphon.server.energy import offer_commands
from antiphon.server.http import routes
from antiphon.services.kb import Knowledge
from antiphon.services.kb.embedders import LazyEmbedder
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from tests.fakes.calls import LoopClock, Server
from tests.fakes.scripted import ScriptedModel


class WebApp:
    """The header X-User names the user. "stranger" is refused, "local" has no token, as where none is required, and
    "admin" has an admin token."""

    def __init__(self, server: Server, **deps: Any) -> None:
        self.server = server
        self.problems: list[str] = []
        self.tool_changes = ToolChanges("1", "1", (), ())
        deps.setdefault("knowledge", Knowledge(server.database.knowledge, LazyEmbedder(None), LoopClock()))
        self.deps = HttpDeps(
            hub=server.hub,
            nodes=server.nodes,
            conversations=server.database.conversations,
            voice_calls=server.database.voice_calls,
            registry=server.gate.registry,  # type: ignore[arg-type]
            identify=self._identify,
            ready=self._ready,
            clock=LoopClock(),
            operator=self._operator(),
            **deps,
        )
        offer_commands(server.nodes)
        self.app = Starlette(routes=routes(self.deps))
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url="http://test")

    def _operator(self) -> OperatorDeps:
        database = self.server.database
        return OperatorDeps(
            overview=database.overview,
            events=database.events,
            audit=database.audit,
            tokens=database.tokens,
            blocks=database.blocks,
            compare_tools=self._compare_tools,
        )

    async def _compare_tools(self) -> ToolChanges:
        return self.tool_changes

    async def chat(self, message: str = "", *, user: str = "ann", **fields: Any) -> httpx2.Response:
        body = {"message": message, **fields} if message else fields
        return await self.http.post("/api/chat", json=body, headers={"X-User": user})

    async def get(self, path: str, user: str = "ann") -> httpx2.Response:
        return await self.http.get(path, headers={"X-User": user})

    async def put(self, path: str, user: str = "ann", **fields: Any) -> httpx2.Response:
        return await self.http.put(path, json=fields, headers={"X-User": user})

    async def post(self, path: str, user: str = "ann") -> httpx2.Response:
        return await self.http.post(path, headers={"X-User": user})

    async def delete(self, path: str, user: str = "ann") -> httpx2.Response:
        return await self.http.delete(path, headers={"X-User": user})

    async def aclose(self) -> None:
        await self.http.aclose()
        await self.server.aclose()

    async def _identify(self, request: Request) -> Caller | None:
        user = request.headers.get("x-user", "ann")
        if user == "stranger":
            return None
        return Caller(user, authenticated=user != "local", token_id=f"token of {user}", is_admin=user == "admin")

    async def _ready(self) -> Sequence[str]:
        return self.problems


class WebApps:
    """Servers with their routes, closed when the test is over."""

    def __init__(self) -> None:
        self.opened: list[WebApp] = []
        self.script = ScriptedModel([])
        """The model of the server that was opened last, if it is scripted."""

    def open(self, *tools: Tool, text: Any, deps: dict[str, Any] | None = None, **rest: Any) -> WebApp:
        """`text` is a text model, or the script of one."""
        if isinstance(text, list):
            text = self.script = ScriptedModel(text)
        web = WebApp(Server(*tools, models={Mode.TEXT: text_factory(text)}, **rest), **(deps or {}))
        self.opened.append(web)
        return web

    async def aclose(self) -> None:
        for web in self.opened:
            await web.aclose()


class Reader:
    """A request to `/api/chat` whose answer is streamed, and whose client may disconnect."""

    def __init__(self, web: WebApp, body: dict[str, Any], accept: str = "text/event-stream") -> None:
        self.sent: list[Message] = []
        self._gone = asyncio.Event()
        self._body: list[Message] = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/chat",
            "query_string": b"",
            "headers": [(b"accept", accept.encode())],
            "client": ("127.0.0.1", 1),
        }
        self.task = asyncio.create_task(web.app(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if self._body:
            return self._body.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    async def go_away(self) -> None:
        self._gone.set()
        await self.task

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The name and data of each event, without the heartbeats."""
        blocks = [block.split("\n") for block in self.text.split("\n\n") if block and not block.startswith(":")]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]
