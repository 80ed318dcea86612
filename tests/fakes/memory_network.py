"""An event loop whose network is in memory and whose clock is virtual: the same program runs the same way every time.

Servers and clients use asyncio's own functions (`create_server`, `create_connection`), so that the libraries above them
are the real ones. Data takes a fixed time to arrive. There is no TLS: a client that asks for it is connected without.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from tests.fakes.steady_loop import SteadyLoop

LATENCY_S: Final = 0.005
"""How long data is on its way. What is under way when a connection breaks is lost, as on a real network."""

Factory = Callable[[], asyncio.BaseProtocol]


class MemoryTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, addresses: tuple[tuple[str, int], tuple[str, int]]) -> None:
        own, other = addresses
        super().__init__({"sockname": own, "peername": other})
        self.peer: MemoryTransport
        self._loop = loop
        self._protocol: Any = None
        self._arriving: deque[bytes | None] = deque()
        """What the other end has sent; None is the end of it."""
        self._waiting: deque[bytes | None] = deque()
        """What has arrived while reading was paused."""
        self._is_paused = self._is_closing = self._is_lost = False

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    # What a protocol calls.

    def write(self, data: Any) -> None:
        if not self._is_closing and data:
            self._send(bytes(data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._send(None)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._send(None)
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        self._is_closing = True
        self._loop.call_soon(self._lose, None)
        self._loop.call_later(LATENCY_S, self.peer._lose, ConnectionResetError("connection reset by peer"))

    def is_closing(self) -> bool:
        return self._is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def is_reading(self) -> bool:
        return not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._read)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Everything that is written leaves at once."""

    def get_write_buffer_size(self) -> int:
        return 0

    # How data travels.

    def _send(self, data: bytes | None) -> None:
        self.peer._arriving.append(data)
        self._loop.call_later(LATENCY_S, self.peer._arrive)

    def _arrive(self) -> None:
        # A queue, since timers that are due at the same time come in any order.
        self._waiting.append(self._arriving.popleft())
        self._read()

    def _read(self) -> None:
        while self._waiting and not self._is_paused and not self._is_lost:
            data = self._waiting.popleft()
            if data is not None:
                if not self._is_closing:
                    self._protocol.data_received(data)
            elif not self._protocol.eof_received():
                self.close()

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._protocol.connection_lost(error)


class MemoryServer(asyncio.AbstractServer):
    def __init__(self, servers: dict[int, Factory], port: int) -> None:
        self._servers = servers
        self._port = port

    def close(self) -> None:
        self._servers.pop(self._port, None)

    def is_serving(self) -> bool:
        return self._port in self._servers

    async def wait_closed(self) -> None:
        """Connections stay open."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def start_serving(self) -> None:
        """It serves from the beginning."""

    async def serve_forever(self) -> None:
        await self.get_loop().create_future()


class MemoryLoop(SteadyLoop):
    """Nothing on it may use real sockets or threads; what is given to an executor is run at once."""

    def __init__(self) -> None:
        super().__init__()
        self._servers: dict[int, Factory] = {}
        self._ports = count(50_000)

    async def create_server(self, protocol_factory: Factory, host: Any = None, port: Any = None, **_: Any) -> Any:
        self._servers[port] = protocol_factory
        return MemoryServer(self._servers, port)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Factory, host: Any = None, port: Any = None, **_: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        await asyncio.sleep(LATENCY_S)
        serve = self._servers.get(port)
        if serve is None:
            raise ConnectionRefusedError(111, f"Connect call failed ({host!r}, {port})")
        own, other = ("127.0.0.1", next(self._ports)), ("127.0.0.1", port)
        here, there = MemoryTransport(self, (own, other)), MemoryTransport(self, (other, own))
        here.peer, there.peer = there, here
        there.begin(serve())
        protocol = protocol_factory()
        here.begin(protocol)
        return here, protocol

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future
