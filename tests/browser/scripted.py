"""A server that sends what a test tells it to. It serves the real page, with a script in the place of a session."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from antiphon.server import page
from antiphon.server.guard import Guard
from tests.browser import knowledge

FOREIGN_NAME: Final = "page.test"
"""A host name that the browser of these tests resolves to this machine without treating it as local."""
PATIENCE_S: Final = 10.0
"""How long to wait for what the page does at once. Other tests may be using the machine's cores."""
FRAMED: Final = "A page that lets itself be framed"
PICTURE: Final = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)

Message = dict[str, Any]


def ladder(mode: str, *models: str) -> Message:
    """The models of a mode, the best one first, of which none waits."""
    levels = range(len(models), 0, -1)
    rungs = [{"level": level, "model": model, "cooling_s": 0.0} for level, model in zip(levels, models, strict=True)]
    return {"mode": mode, "max": len(models), "best": len(models), "rungs": rungs}


class Wire:
    """One test's side of the protocol: what the page sends, over all its connections, and what it is sent."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.heard: list[Message] = []
        self.sound: list[bytes] = []
        """Audio frames of the microphone."""
        self.hellos: list[Message] = []
        self.deleted: list[str] = []
        """The paths that the page has asked to delete."""
        self.posted: list[str] = []
        """The paths that the page has posted to."""
        self.refusals: dict[str, str] = {}
        """What a post to a path is refused with."""
        self.records: dict[str, Any] = {
            "/api/models": {
                "models": [
                    {"name": "builtin", "mode": "text", "needs_network": False, "current": True},
                    {"name": "cascade", "mode": "voice", "needs_network": False, "current": True},
                ]
            },
            "/api/energy": {
                "ladders": [
                    ladder("voice", "best-voice", "standard-voice", "cascade"),
                    ladder("text", "best-text", "builtin"),
                ],
                "sessions": [],
            },
            "/api/voices": {"voices": []},
            "/api/conversations": {"conversations": [], "next": None},
            "/api/calls": {"calls": []},
        }
        self.knowledge = knowledge.ScriptedKnowledge()
        self.admits = True
        """Whether handshakes are accepted; otherwise they are answered with 503."""
        self.answers_pings = True
        self.greets = True
        """Whether it sends the session message, as every server does."""
        self.resumes = True
        """Whether a resume handle is accepted; otherwise a new session begins."""
        self.mode = "text"
        self.energy: Message | None = {"voice": 3, "text": 2}
        self._n = 0
        self._sessions = 0
        self._loop = loop
        self._socket: WebSocket | None = None
        self._changed = threading.Condition()

    def tell(self, type: str, **fields: Any) -> None:
        """Sends a message to the page."""
        asyncio.run_coroutine_threadsafe(self._send(type, fields), self._loop).result(PATIENCE_S)

    def tell_all(self, *messages: Message) -> None:
        for message in messages:
            self.tell(**message)

    def speak(self, turn: int, seq: int, pcm: bytes) -> None:
        """Sends speech to the page, as a binary frame."""
        self._n += 1
        head = b"\x01" + self._n.to_bytes(4) + turn.to_bytes(4) + seq.to_bytes(4)
        asyncio.run_coroutine_threadsafe(self._connected.send_bytes(head + pcm), self._loop).result(PATIENCE_S)

    def close(self, code: int, reason: str = "") -> None:
        with suppress(WebSocketDisconnect):
            asyncio.run_coroutine_threadsafe(self._connected.close(code, reason), self._loop).result(PATIENCE_S)

    def said(self, type: str, **fields: Any) -> list[Message]:
        """The messages of this type that the page has sent so far."""
        return [each for each in [*self.heard] if each["type"] == type and fields.items() <= each.items()]

    def wait_for(self, type: str, *, count: int = 1, **fields: Any) -> Message:
        """Waits for the page's message of this type, or for the `count`th one."""
        self.wait_until(lambda: len(self.said(type, **fields)) >= count, f"no {type} {fields} came")
        return self.said(type, **fields)[count - 1]

    def wait_for_page(self, *, count: int = 1) -> None:
        """Waits until the page has had this many sessions."""
        self.wait_until(lambda: self._sessions >= count, "the page did not connect")

    def wait_until(self, holds: Callable[[], bool], otherwise: str) -> None:
        with self._changed:
            assert self._changed.wait_for(holds, PATIENCE_S), f"{otherwise}; the page said {self.heard}"

    @property
    def _connected(self) -> WebSocket:
        assert self._socket is not None, "the page is not connected"
        return self._socket

    async def _send(self, type: str, fields: Message) -> None:
        self._n += 1
        await self._connected.send_text(json.dumps({"type": type, **fields, "n": self._n}))

    async def talk(self, websocket: WebSocket) -> None:
        if not self.admits:
            await websocket.send_denial_response(Response("not now", 503))
            return
        await websocket.accept()
        self._socket = websocket
        with suppress(WebSocketDisconnect, RuntimeError):
            hello = await websocket.receive_json()
            self._note(lambda: self.hellos.append(hello))
            if self.greets:
                await self._greet(hello)
            while True:
                await self._take(await websocket.receive())

    async def _greet(self, hello: Message) -> None:
        is_return = "resume" in hello
        resumed = is_return and self.resumes
        if not resumed:
            self._n = 0
        if is_return and not resumed:
            await self._send(
                "error", {"message": "The session is gone.", "code": "resume_rejected", "retryable": False}
            )
            notice = {"kind": "warning", "text": "Could not resume.", "code": "new_session", "duration_ms": None}
            await self._send("notice", notice)
        if not resumed:
            await self._send("state", {"state": "idle"})
        await self._send(
            "session",
            {
                "session_id": "s1",
                "conversation_id": hello.get("conversation_id") or "c1",
                "resume": f"handle-{self._sessions}",
                "resumed": resumed,
                "mode": self.mode,
                "tools_version": "1",
                "expires_in_s": 7200,
                "energy": self.energy,
            },
        )
        self._note(self._count_session)

    def _count_session(self) -> None:
        self._sessions += 1

    async def _take(self, event: Any) -> None:
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        if event.get("text") is None:
            self._note(lambda: self.sound.append(event["bytes"]))
            return
        message = json.loads(event["text"])
        if message["type"] == "ping" and self.answers_pings:
            await self._send("pong", {"t": message["t"]})
        self._note(lambda: self.heard.append(message))

    def _note(self, change: Callable[[], None]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith(knowledge.PATH):
            return await self.knowledge.answer(request)
        if request.method == "DELETE":
            self._note(lambda: self.deleted.append(path))
            return Response(status_code=204)
        if request.method == "POST":
            self._note(lambda: self.posted.append(path))
            problem = self.refusals.get(path)
            return Response(status_code=204) if problem is None else JSONResponse({"error": {"message": problem}}, 409)
        return JSONResponse(self.records[path])


class ScriptedServer:
    """The server of all tests. Each test begins with its own `Wire`."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self._loop = loop
        self.wire = self.begin()

    def begin(self) -> Wire:
        self.wire = Wire(f"http://127.0.0.1:{self.port}/", self._loop)
        return self.wire

    async def talk(self, websocket: WebSocket) -> None:
        await self.wire.talk(websocket)

    async def answer(self, request: Request) -> Response:
        return await self.wire.answer(request)


async def _frame(request: Request) -> Response:
    return HTMLResponse(f"<p>{FRAMED}</p><script>parent.xss = 1</script>", headers={"content-security-policy": ""})


async def _refuse_frame(request: Request) -> Response:
    return HTMLResponse("<p>Alone or not at all</p>", headers={"content-security-policy": "frame-ancestors 'none'"})


async def _draw(request: Request) -> Response:
    if request.path_params["name"] != "picture":
        return Response(status_code=404)
    return Response(PICTURE, media_type="image/png")


@contextmanager
def serve_scripted() -> Iterator[ScriptedServer]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    loop = asyncio.new_event_loop()
    scripted = ScriptedServer(port, loop)
    app = Starlette(
        routes=[
            WebSocketRoute("/ws", scripted.talk),
            # Looked up now: the folder that is served by default was chosen when the module was read.
            *page.routes(page.STATIC),
            Route("/api/{path:path}", scripted.answer, methods=["GET", "DELETE", "POST"]),
            Route("/framed", _frame),
            Route("/unframed", _refuse_frame),
            Route("/images/{name}.png", _draw),
        ]
    )
    origins = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", FOREIGN_NAME)]
    # Pings draw from the global random numbers, and from this thread that would fail whatever Hypothesis test runs.
    config = uvicorn.Config(
        Guard(app, origins=origins), log_level="error", lifespan="off", ws="websockets-sansio", ws_ping_interval=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield scripted
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE_S)
        loop.close()
        listener.close()
