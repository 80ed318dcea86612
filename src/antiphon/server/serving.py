"""uvicorn, run our way: it keeps deadlines, says who holds a port, and drains before it closes a socket."""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, Final

import psutil
import uvicorn
from starlette.types import ASGIApp

from antiphon.errors import AntiphonError
from antiphon.protocol.limits import MAX_FRAME_BYTES
from antiphon.server.connections import MAX_HEADER_BYTES, Deadlines, HttpConnection, WebSocketConnection
from antiphon.server.health import LagMonitor
from antiphon.telemetry.log import get_logger

DRAIN_S: Final = 10.0
"""How long the application may take to send its callers away before their sockets are closed."""
CLOSE_S: Final = 5
"""How long requests that are being answered may then go on."""
FORCED_S: Final = 1.0
"""How long the end of the application may take after a second signal."""
PING_S: Final = 20.0
"""Between pings, and for the answer to one: a socket whose other end is gone is found within twice that."""
KEEP_ALIVE_S: Final = 5
BACKLOG: Final = 512

_log = get_logger(__name__)


class ServingError(AntiphonError):
    """The server cannot listen where it was told to."""

    code = "serving"


class Server(uvicorn.Server):
    """Serves one application on one host and port until a signal, or `should_exit`, ends it.

    At the first SIGTERM or SIGINT `on_drain` is awaited for at most `drain_s`, with every socket still open and new
    ones still accepted, so that `/ready` can say no. Then what is left is closed, WebSockets with 1012. A second signal
    ends the waiting at once. `serve` returns afterwards; unlike uvicorn it does not raise the signal again, which would
    end the process before its stores are closed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        on_drain: Callable[[], Awaitable[None]] | None = None,
        on_started: Callable[[], None] | None = None,
        drain_s: float = DRAIN_S,
        deadlines: Deadlines | None = None,
        proxies: Collection[str] = (),
        handles_signals: bool = True,
        lag: LagMonitor | None = None,
    ) -> None:
        """`proxies` are the addresses whose X-Forwarded-For is believed; from others it is only a claim."""
        deadlines = deadlines or Deadlines()
        # uvicorn calls them as it would a class; what it declares is narrower.
        http: Any = partial(HttpConnection, deadlines=deadlines)
        ws: Any = partial(WebSocketConnection, deadlines=deadlines)
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http=http,
                ws=ws,
                lifespan="on",
                # Its loggers go to ours. At levels below warning they write paths with their queries, and frames.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
                workers=1,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=CLOSE_S,
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
                ws_max_size=MAX_FRAME_BYTES,
                ws_per_message_deflate=False,
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
            )
        )
        self.lag = lag or LagMonitor()
        self._handles_signals = handles_signals
        self._on_drain = on_drain
        self._on_started = on_started
        self._drain_s = drain_s
        self._sockets: list[socket.socket] = []
        self._monitor: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port in use, which differs from the one asked for if that was 0; known once it listens."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else self.config.port

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Raises `ServingError` if it cannot listen."""
        self._sockets = listen(self.config.host, self.config.port) if sockets is None else sockets
        try:
            await super().serve(self._sockets)
        finally:
            if self._monitor is not None:
                self._monitor.cancel()
            for each in self._sockets:
                each.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._on_started is not None:
            self._on_started()
        # From here on: before, there is nobody to be kept waiting.
        self._monitor = asyncio.create_task(self.lag.run())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Here, since uvicorn tells the application of a shutdown only after its sockets are closed.
        if self._on_drain is not None and not self.force_exit:
            await self._drain(self._on_drain)
        await super().shutdown(sockets)
        if self.force_exit:
            # uvicorn leaves the application's own end out then. It gets a moment: a store may want to be closed.
            with suppress(TimeoutError):
                await asyncio.wait_for(self.lifespan.shutdown(), FORCED_S)

    async def _drain(self, on_drain: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        draining = asyncio.ensure_future(on_drain())
        give_up_s = loop.time() + self._drain_s
        # Looked at ten times a second, as uvicorn does: a handler set by `signal` does not wake the loop.
        while not draining.done() and not self.force_exit and (left_s := give_up_s - loop.time()) > 0:
            await asyncio.wait([draining], timeout=min(0.1, left_s))
        if not draining.done():
            _log.warning("draining was cut short", after_s=self._drain_s, by_signal=self.force_exit)
            draining.cancel()
            await asyncio.wait([draining], timeout=1.0)
        elif (error := draining.exception()) is not None:
            _log.error("draining failed", exc_info=error)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A server that is only a part of a program leaves the signals to it."""
        if self._handles_signals:
            with super().capture_signals():
                yield
        else:
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for every address of the host."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ServingError(f"there is no address for the host {host!r} ({error.strerror}). Check --host.") from None
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        # A host with two addresses has one port: with 0, the first decides for the second.
        wanted = (address[0], sockets[0].getsockname()[1] if sockets and not port else port, *address[2:])
        try:
            sockets.append(_bind(family, wanted))
        except OSError as error:
            failed = error
            # Where IPv6 is switched off, localhost still has its second address.
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    else:
        if sockets:
            return sockets
    for each in sockets:
        each.close()
    raise ServingError(_explain(failed, host, port)) from None


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    # asyncio switches Nagle's delay off only where the protocol is named: without, messages that follow each other
    # closely wait for the client's acknowledgement of the first, 40 ms in each turn.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        # Two sockets may both bind, with SO_REUSEADDR; only one may listen.
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _explain(error: OSError | None, host: str, port: int) -> str:
    match error.errno if error is not None else None:
        case errno.EADDRINUSE:
            return (
                f"port {port} is in use. Choose another with --port, or stop the program that holds it{_holder(port)}."
            )
        case errno.EACCES:
            return f"port {port} needs rights that this user has not. Choose one above 1023 with --port."
        case errno.EADDRNOTAVAIL:
            return f"{host} is no address of this machine. Choose one with --host."
    reason = error.strerror if error is not None else "it has no address"
    return f"cannot listen on {host}, port {port}: {reason}. Choose others with --host and --port."


def _holder(port: int) -> str:
    """Who listens there, if the system tells: other users' programs have no pid for us, and macOS tells nothing."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            is_it = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if is_it and connection.pid is not None:
                return f' (pid {connection.pid}, "{psutil.Process(connection.pid).name()}")'
    return ""


def machine_names() -> Sequence[str]:
    """What others in the same network call this machine: by its host name, and by multicast DNS."""
    name = socket.gethostname()
    short = name.partition(".")[0]
    return [*dict.fromkeys([name, short, f"{short}.local"])]


def machine_addresses(sockets: Iterable[socket.socket]) -> Sequence[str]:
    """All addresses of the machine, of the kinds that these sockets listen on."""
    families = {each.family for each in sockets}
    addresses = [each.address for links in psutil.net_if_addrs().values() for each in links if each.family in families]
    # Link-local addresses carry a zone, which no browser can write in an address bar.
    return [each for each in addresses if "%" not in each]


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`, on uvloop where that is installed: with a hundred callers, 0.74 of a core instead of 0.85."""
    make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    # There is none for Windows.
    with suppress(ImportError):
        from uvloop import new_event_loop

        make_loop = new_event_loop
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main)
