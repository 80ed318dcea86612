"""The server that a command talks to: the one at --url, or the one of the settings on this machine."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from antiphon.cli.options import UsageError
from antiphon.client import Session, Untrusted, connect
from antiphon.config import Settings
from antiphon.security.origin import is_loopback, own_authority, reachable_host
from antiphon.server.tls import self_signed_files

if TYPE_CHECKING:
    from antiphon.protocol.client_messages import Hello, Mode

PROBE_S: Final = 2.0
ADVICE: Final = "If you trust the server, give its certificate, or that of its issuer, with --cacert FILE."


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    token: str | None = None
    tls: ssl.SSLContext | None = None
    """What is trusted; None means the certificates that the system trusts."""
    is_chosen: bool = True
    """Whether the user has named it. The server of the settings need not be running."""

    @property
    def http_url(self) -> str:
        """The base of its HTTP routes."""
        parts = urlsplit(self.url)
        scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
        path = parts.path.rstrip("/").removesuffix("/ws")
        return parts._replace(scheme=scheme, path=path, query="", fragment="").geturl()

    def connect(
        self, *, reconnect: bool = False, mode: "Mode | None" = None, hello: "Hello | None" = None
    ) -> AbstractAsyncContextManager[Session]:
        return connect(self.url, token=self.token, mode=mode, hello=hello, reconnect=reconnect, tls=self.tls)

    def moved_to(self, url: str) -> "Target":
        """Returns a server that this program has started for itself."""
        return replace(self, url=url, tls=None)


def find_target(settings: Settings, url: str | None, token: str | None, cacert: Path | None = None) -> Target:
    """Finds the server and what is trusted there. Raises `UsageError` if `cacert` cannot be used."""
    if url is None:
        return (
            replace(_own_target(settings), token=token)
            if cacert is None
            else Target(f"wss://{_own_authority(settings)}/ws", token, trust(cacert), is_chosen=False)
        )
    if cacert is not None:
        if not url.startswith(("wss:", "https:")):
            raise UsageError(f"--cacert is for addresses that begin with https or wss, and {url} does not.")
        return Target(url, token, trust(cacert))
    return Target(url, token, _trust_of_this_machine(settings, url))


def trust(cacert: Path) -> ssl.SSLContext:
    """Makes a context that trusts the certificates of a PEM file and no others."""
    try:
        context = ssl.create_default_context(cafile=str(cacert))
    except ssl.SSLError:
        raise UsageError(f"{cacert} (--cacert) has no certificate in PEM format.") from None
    except OSError as error:
        raise UsageError(f"{cacert} (--cacert) cannot be read: {error.strerror}.") from None
    # A server's own certificate is enough, also if an authority has signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


@contextmanager
def explain_untrusted() -> Iterator[None]:
    """Adds to an error about a certificate which option helps."""
    try:
        yield
    except Untrusted as error:
        raise UsageError(f"{error} {ADVICE}") from None


def _own_target(settings: Settings) -> Target:
    authority = _own_authority(settings)
    plain = Target(f"ws://{authority}/ws", is_chosen=False)
    context = _trust_of_this_machine(settings, f"wss://{authority}")
    if context is None:
        return plain
    # With --self-signed, the settings do not tell whether the server speaks TLS.
    if settings.tls_paths is None and not _speaks_tls(settings, context):
        return plain
    return Target(f"wss://{authority}/ws", tls=context, is_chosen=False)


def _own_authority(settings: Settings) -> str:
    return own_authority(settings.server.host, settings.server.port)


def _trust_of_this_machine(settings: Settings, url: str) -> ssl.SSLContext | None:
    """Returns what is trusted at an address of this machine: the certificate of its server, whatever names it has."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None
    if not is_loopback(host) and host != settings.server.host:
        return None
    paths = settings.tls_paths
    file = self_signed_files(settings.data_dir).certificate if paths is None else paths[0]
    if not file.exists():
        return None
    context = trust(file)
    context.check_hostname = False
    return context


def _speaks_tls(settings: Settings, context: ssl.SSLContext) -> bool:
    address: Any = (reachable_host(settings.server.host), settings.server.port)
    try:
        with (
            socket.create_connection(address, timeout=PROBE_S) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except (OSError, ValueError):
        return False
