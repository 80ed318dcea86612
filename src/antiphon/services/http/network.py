"""Connects only to addresses that were checked: the name is resolved once, and the result is what is connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

import httpx2
from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError

from antiphon.security.destinations import check_addresses, parse_address

MAX_ADDRESSES: Final = 3
"""How many addresses of a host are tried."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the IP addresses of a name, best first. Raises OSError."""

Authority = tuple[str, int]
"""A host and a port."""


def authority(url: str) -> Authority:
    """Returns the host and port of an address from the settings."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


class CheckedBackend(AsyncNetworkBackend):
    """Makes the connections of a pool. TLS and the Host header still use the name that the pool knows."""

    def __init__(self, resolve: Resolve, dial: AsyncNetworkBackend, trusted: Collection[Authority]) -> None:
        self._resolve = resolve
        self._dial = dial
        self._trusted = frozenset(trusted)
        """Hosts that the operator has configured, which may be in a private network."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """Raises `ForbiddenAddress` unless all addresses of the host are public, or the host is trusted."""
        addresses = [host] if parse_address(host) is not None else await self._find(host, port)
        if (host, port) not in self._trusted:
            check_addresses(addresses)
        failure = ConnectError(f"{host} has no address")
        tried = addresses[:MAX_ADDRESSES]
        share_s = None if timeout is None else timeout / len(tried)
        for address in tried:
            try:
                return await self._dial.connect_tcp(
                    address, port, timeout=share_s, local_address=local_address, socket_options=socket_options
                )
            except Exception as error:
                failure = ConnectError(f"{host}: {error}")
        raise failure

    async def _find(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"{host} cannot be resolved: {error}") from error
        if not addresses:
            raise ConnectError(f"{host} has no address")
        return addresses

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SOCKET_OPTION] | None = None
    ) -> AsyncNetworkStream:
        raise ConnectError("a file is not a host")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def resolve(host: str, port: int) -> list[str]:
    """Asks the resolver of the system."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Network:
    """How the clients of a process reach hosts. Tests pass a resolver and a backend of their own."""

    def __init__(
        self, resolve: Resolve = resolve, dial: AsyncNetworkBackend | None = None, tls: SSLContext | None = None
    ) -> None:
        self.resolve = resolve
        self.dial = dial or AnyIOBackend()
        self._tls = tls

    async def tls(self) -> SSLContext:
        """Returns the context for TLS. It is made at its first use, in a thread, since that reads all certificates."""
        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
        return self._tls
