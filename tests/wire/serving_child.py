"""A server in its own process, for tests that send it signals. Its first line of output is its port."""

import asyncio
import sys

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from antiphon.security.origin import own_origins
from antiphon.server.guard import Guard
from antiphon.server.serving import Server, listen, run_loop


class EchoApp:
    def __init__(self, drain_s: float) -> None:
        self.drain_s = drain_s
        self.callers: set[WebSocket] = set()
        self.draining = False

    async def ready(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse("draining" if self.draining else "ready", 503 if self.draining else 200)

    async def call(self, socket: WebSocket) -> None:
        await socket.accept()
        self.callers.add(socket)
        try:
            while True:
                await socket.send_text(await socket.receive_text())
        except WebSocketDisconnect as gone:
            print(f"socket closed with {gone.code}", flush=True)
        finally:
            self.callers.discard(socket)

    async def drain(self) -> None:
        self.draining = True
        for caller in self.callers:
            await caller.send_text("go_away")
        await asyncio.sleep(self.drain_s)
        print("drained", flush=True)


async def main(drain_s: float) -> None:
    echo = EchoApp(drain_s)
    sockets = listen("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    app = Starlette(routes=[Route("/ready", echo.ready), WebSocketRoute("/ws", echo.call)])
    server = Server(
        Guard(app, origins=own_origins("127.0.0.1", port)),
        host="127.0.0.1",
        port=port,
        on_drain=echo.drain,
        drain_s=60,
        on_started=lambda: print(port, flush=True),
    )
    await server.serve(sockets)
    print("stores closed", flush=True)


if __name__ == "__main__":
    run_loop(main(float(sys.argv[1])))
