"""uvicorn's connections, which can also withhold pongs, send half a frame, and reset the TCP connection."""

import asyncio
import socket
import struct
from typing import Any, Final, Protocol

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode

FLUSH_S: Final = 0.05
"""How long written bytes get to leave this process before the connection is reset, which discards them."""
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of zero: closing the socket sends RST instead of FIN."""


class Wire(Protocol):
    """The transport of one connection."""

    def delay_pongs(self, seconds: float | None) -> None:
        """Answers pings only after this time; None is never."""
        ...

    async def send_half(self, data: bytes, *, is_binary: bool = False) -> None:
        """Sends the first half of a message."""
        ...

    async def reset(self) -> None: ...


class Wires:
    """The open connections of a server, by the client's address."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Wire] = {}

    def add(self, client: tuple[str, int] | None, wire: Wire) -> None:
        if client is not None:
            self._open[client] = wire

    def remove(self, client: tuple[str, int] | None, wire: Wire) -> None:
        # After an upgrade, the WebSocket's connection has replaced the one for HTTP.
        if client is not None and self._open.get(client) is wire:
            del self._open[client]

    def of(self, scope: Scope) -> Wire:
        return self._open[tuple(scope["client"])]


async def _reset(transport: asyncio.Transport) -> None:
    await asyncio.sleep(FLUSH_S)
    bound = transport.get_extra_info("socket")
    if bound is not None:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


class SimHttp(H11Protocol):
    def __init__(self, *args: Any, wires: Wires, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._wires = wires

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wires.add(self.client, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wires.remove(self.client, self)
        super().connection_lost(exc)

    def delay_pongs(self, seconds: float | None) -> None:
        raise RuntimeError("HTTP has no pings")

    async def send_half(self, data: bytes, *, is_binary: bool = False) -> None:
        """Sends half of the data in a chunk that says that it has all of it."""
        self.transport.write(b"%x\r\n" % len(data) + data[: len(data) // 2])

    async def reset(self) -> None:
        await _reset(self.transport)


class SimWebSocket(WebSocketsSansIOProtocol):
    _pong_delay_s: float | None = 0.0

    def __init__(self, *args: Any, wires: Wires, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._wires = wires

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wires.add(self.client, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wires.remove(self.client, self)
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            # uvicorn would log that the handshake was not completed, although it was refused.
            self.handshake_complete = True

    def handle_ping(self) -> None:
        pong = b"".join(self.conn.data_to_send())
        if self._pong_delay_s is None:
            return
        if self._pong_delay_s == 0:
            self.transport.write(pong)
        else:
            self.loop.call_later(self._pong_delay_s, self._write, pong)

    def _write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def delay_pongs(self, seconds: float | None) -> None:
        self._pong_delay_s = seconds

    async def send_half(self, data: bytes, *, is_binary: bool = False) -> None:
        frame = Frame(Opcode.BINARY if is_binary else Opcode.TEXT, data).serialize(mask=False)
        self.transport.write(frame[: len(frame) // 2])

    async def reset(self) -> None:
        await _reset(self.transport)
