"""Runs a simulator's servers: its own, with TLS if it is wanted, and the control port."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.types import ASGIApp

from antiphon.sim.wire import SimHttp, SimWebSocket, Wires

if TYPE_CHECKING:
    from antiphon.sim.certificates import Certificates

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The providers accept large messages: OpenAI's limit for audio is 15 MiB."""
CLOSE_S: Final = 1


class _Server(uvicorn.Server):
    """A server inside a program that handles the signals itself."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    def capture_signals(self) -> Any:
        return nullcontext()


@asynccontextmanager
async def serving(
    app: ASGIApp, sockets: Sequence[socket.socket], *, wires: Wires, certificates: "Certificates | None" = None
) -> AsyncIterator[None]:
    """Serves the app on these sockets for the duration of the block."""
    http: Any = partial(SimHttp, wires=wires)
    ws: Any = partial(SimWebSocket, wires=wires)
    server = _Server(
        uvicorn.Config(
            app,
            http=http,
            ws=ws,
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=CLOSE_S,
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            # The endpoint behind it must see a dead client as the provider would: by nothing but silence.
            ws_ping_interval=None,
            ssl_certfile=None if certificates is None else certificates.certificate,
            ssl_keyfile=None if certificates is None else str(certificates.key),
        )
    )
    running = asyncio.create_task(server.serve(list(sockets)))
    try:
        up = asyncio.create_task(server.is_up.wait())
        await asyncio.wait([up, running], return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        if running.done():
            running.result()
        yield
    finally:
        server.should_exit = True
        await running
