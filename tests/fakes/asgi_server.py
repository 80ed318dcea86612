"""Runs an ASGI application in uvicorn as it is without options, in a thread."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def run_uvicorn(app: Any, **options: Any) -> Iterator[str]:
    """Gives `host:port`. Leaving the block stops the server as a signal would, and waits for its end."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    started = threading.Event()
    startup = server.startup

    async def start(sockets: list[socket.socket] | None = None) -> None:
        try:
            await startup(sockets)
        finally:
            started.set()

    server.startup = start  # type: ignore[method-assign]
    thread.start()
    try:
        assert started.wait(50), "the server did not start"
        assert server.started, "the application refused to start"
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive(), "the server did not stop"
