"""Runs uvicorn with deadlines, clear errors about ports, and draining before sockets are closed."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Final

import psutil
import uvicorn
from starlette.types import ASGIApp

from antiphon.errors import AntiphonError
from antiphon.protocol.limits import MAX_FRAME_BYTES
from antiphon.security.origin import is_loopback, is_wildcard, own_authority
from antiphon.server.connections import MAX_HEADER_BYTES, Deadlines, HttpConnection, WebSocketConnection
from antiphon.server.health import LagMonitor
from antiphon.telemetry.log import get_logger

DRAIN_S: Final = 10.0
"""How long the application may take to drain before its sockets are closed."""
CLOSE_S: Final = 5
"""How long requests may then continue."""
FORCED_S: Final = 1.0
"""How long the application's own shutdown may take after a second signal."""
PING_S: Final = 20.0
"""The interval between pings, and the time for a pong: a dead connection is found within twice that."""
KEEP_ALIVE_S: Final = 5
BACKLOG: Final = 512

_log = get_logger(__name__)


class ServingError(AntiphonError):
    """The server cannot listen on the configured address."""

    code = "serving"


class Server(uvicorn.Server):
    """Serves one application on one host and port until a signal, or `should_exit`, ends it.

    At the first SIGTERM or SIGINT, `on_drain` is awaited for at most `drain_s`, while every socket stays open and new
    ones are accepted, so that `/ready` can report it. Then the remaining sockets are closed, WebSockets with 1012. A
    second signal ends the wait at once. `serve` then returns; uvicorn would raise the signal again, which would end the
    process before its stores are closed.
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
        tls: ssl.SSLContext | None = None,
        handles_signals: bool = True,
        lag: LagMonitor | None = None,
    ) -> None:
        """`proxies` are the addresses and networks whose X-Forwarded-For header is trusted. With `tls`, nothing but TLS
        is spoken."""
        deadlines = deadlines or Deadlines()
        # uvicorn calls these like classes, although it declares a narrower type.
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
                # Its log goes to ours. Below warning level it would contain paths with their queries, and frames.
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
                ssl_context_factory=None if tls is None else lambda config, default: tls,
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
        """The port in use, once it listens. It differs from the configured port if that is 0."""
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
        # Not before: during the start, no client is waiting.
        self._monitor = asyncio.create_task(self.lag.run())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn tells the application about a shutdown only after its sockets are closed, so draining happens here.
        if self._on_drain is not None and not self.force_exit:
            await self._drain(self._on_drain)
        await super().shutdown(sockets)
        if self.force_exit:
            # uvicorn skips the application's shutdown then. It gets a moment all the same, to close its stores.
            with suppress(TimeoutError):
                await asyncio.wait_for(self.lifespan.shutdown(), FORCED_S)

    async def _drain(self, on_drain: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        draining = asyncio.ensure_future(on_drain())
        give_up_s = loop.time() + self._drain_s
        # Polled ten times a second, as in uvicorn: a handler set by `signal` does not wake the loop.
        while not draining.done() and not self.force_exit and (left_s := give_up_s - loop.time()) > 0:
            await asyncio.wait([draining], timeout=min(0.1, left_s))
        if not draining.done():
            _log.warning("drain_cut_short", after_s=self._drain_s, by_signal=self.force_exit)
            draining.cancel()
            await asyncio.wait([draining], timeout=1.0)
        elif (error := draining.exception()) is not None:
            _log.error("drain_failed", exc_info=error)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals alone if the server is only a part of a program."""
        if self._handles_signals:
            with super().capture_signals():
                yield
        else:
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(host: str, port: int) -> list[socket.socket]:
    """Opens a listening socket for every address of the host."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ServingError(f"no address was found for the host {host!r} ({error.strerror}). Check --host.") from None
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        # All addresses of a host get the same port: if it is 0, the first socket decides.
        wanted = (address[0], sockets[0].getsockname()[1] if sockets and not port else port, *address[2:])
        try:
            sockets.append(_bind(family, wanted))
        except OSError as error:
            failed = error
            # localhost has an IPv6 address even where IPv6 is switched off.
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    else:
        if sockets:
            return sockets
    for each in sockets:
        each.close()
    raise ServingError(_explain(failed, host, port)) from None


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    # asyncio switches Nagle's algorithm off only where the protocol is given. With it, a message that closely follows
    # another waits for the client's acknowledgement: 40 ms in each turn.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        # With SO_REUSEADDR two sockets may bind to one port, but only one may listen.
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
            return f"port {port} needs privileges that this user does not have. Choose one above 1023 with --port."
        case errno.EADDRNOTAVAIL:
            return f"{host} is not an address of this machine. Choose one with --host."
    reason = error.strerror if error is not None else "it has no address"
    return f"cannot listen on {host}, port {port}: {reason}. Choose others with --host and --port."


def _holder(port: int) -> str:
    """Names the program that listens on a port, if the system tells: not for other users' programs or on macOS."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            is_it = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if is_it and connection.pid is not None:
                return f' (pid {connection.pid}, "{psutil.Process(connection.pid).name()}")'
    return ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and the addresses by which clients reach it."""

    host: str
    port: int
    addresses: Sequence[str]
    """All addresses of the machine that a wildcard host stands for."""
    is_tls: bool = False

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"

    @property
    def url(self) -> str:
        """The address by which this machine reaches the server."""
        return f"{self.scheme}://{own_authority(self.host, self.port)}"

    @property
    def socket_url(self) -> str:
        return f"{'wss' if self.is_tls else 'ws'}://{own_authority(self.host, self.port)}/ws"

    @property
    def outside_urls(self) -> Sequence[str]:
        """The addresses by which other machines reach it."""
        hosts = self.addresses if is_wildcard(self.host) else [self.host]
        return [f"{self.scheme}://{own_authority(each, self.port)}" for each in hosts if not is_loopback(each)]


def machine_names() -> Sequence[str]:
    """Returns the names of this machine in its network: the host name, and the name in multicast DNS."""
    name = socket.gethostname()
    short = name.partition(".")[0]
    return [*dict.fromkeys([name, short, f"{short}.local"])]


def machine_addresses(sockets: Iterable[socket.socket]) -> Sequence[str]:
    """Returns all addresses of the machine, of the families that these sockets listen on."""
    return list_addresses({each.family for each in sockets})


def list_addresses(families: Collection[int] = (socket.AF_INET, socket.AF_INET6)) -> Sequence[str]:
    """Returns all addresses of the machine of these families."""
    addresses = [each.address for links in psutil.net_if_addrs().values() for each in links if each.family in families]
    # A link-local address has a zone, which browsers do not accept in a URL.
    return [each for each in addresses if "%" not in each]


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Runs like `asyncio.run`, on uvloop if it is installed: with 100 callers, 0.74 of a core instead of 0.85."""
    make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    # uvloop does not exist for Windows.
    with suppress(ImportError):
        from uvloop import new_event_loop

        make_loop = new_event_loop
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main)
