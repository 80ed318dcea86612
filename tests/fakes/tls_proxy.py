"""A proxy that ends TLS, as one stands before a server in production: Google's SDK connects with TLS only."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from antiphon.sim.certificates import make_certificates


@dataclass(frozen=True)
class TlsProxy:
    url: str
    trusts: ssl.SSLContext
    """What a client needs to trust the proxy."""


@asynccontextmanager
async def tls_proxy(port: int, folder: Path) -> AsyncIterator[TlsProxy]:
    """Passes everything on to a port of this machine."""
    certificates = make_certificates(folder)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            there = asyncio.create_task(_copy(reader, inner_writer))
            back = asyncio.create_task(_copy(inner_reader, writer))
            try:
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (there, back):
                    each.cancel()
                for side in (inner_writer, writer):
                    side.close()
                # Last, since the end of the proxy may interrupt it.
                await asyncio.wait([there, back])
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=certificates.server_context())
    try:
        yield TlsProxy(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", certificates.client_context())
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
