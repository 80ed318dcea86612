"""Opens connections, and explains why one could not be opened."""

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI

from antiphon import __version__
from antiphon.client.events import Disconnected, Untrusted
from antiphon.client.resuming import Backoff
from antiphon.client.session import Session
from antiphon.protocol.client_messages import Hello, Mode

SOCKET_PATH: Final = "/ws"
OPEN_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 2.0
MAX_SERVER_FRAME_BYTES: Final = 16 << 20
"""Enough for a sentence of speech, or the history of a long conversation, in one message."""

_SCHEMES: Final = {"http": "ws", "https": "wss"}

# At debug level websockets logs every frame, and some contain tokens and handles.
_quiet: Final = logging.getLogger("antiphon.client.socket")
_quiet.setLevel(logging.WARNING)


@asynccontextmanager
async def connect(
    url: str,
    *,
    token: str | None = None,
    mode: Mode | None = None,
    conversation_id: str | None = None,
    hello: Hello | None = None,
    reconnect: bool = False,
    backoff: Backoff | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Session]:
    """Opens a session with the server at `url`, such as "http://127.0.0.1:8000" or "ws://127.0.0.1:8000/ws". Leaving
    the block ends it.

    `conversation_id` continues an earlier conversation. The session is in text mode unless `mode` or `hello` asks for
    voice. With `reconnect`, the client reconnects after a lost connection and resumes the session; the first connection
    must succeed all the same. `tls` decides which certificates are trusted, by default those that the system trusts.
    Raises `Disconnected`.
    """
    hello = hello or Hello()
    hello = replace(
        hello,
        token=token or hello.token,
        mode=mode or hello.mode or Mode.TEXT,
        conversation_id=conversation_id or hello.conversation_id,
        client=hello.client or f"antiphon-python/{__version__}",
    )
    session = Session(
        lambda: dial(url, tls),
        hello,
        backoff=(backoff or Backoff()) if reconnect else None,
    )
    try:
        await session.start()
        yield session
    finally:
        await session.aclose()


async def dial(url: str, tls: ssl.SSLContext | None = None) -> ClientConnection:
    """Opens a connection to either address that a server announces. Raises `Disconnected`."""
    try:
        address = _socket_address(url)
        return await open_socket(
            address,
            ssl=(tls or True) if address.startswith("wss:") else None,
            compression=None,
            # A proxy cannot reach this machine's loopback addresses.
            proxy=None if _is_loopback(urlsplit(url).hostname or "") else True,
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            max_size=MAX_SERVER_FRAME_BYTES,
            logger=_quiet,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        reason = _reason(bytes(error.response.body or b""))
        text = f"{url} refuses the connection with HTTP {status}{f': {reason}' if reason else '.'}"
        raise Disconnected(text, come_back=status == 429 or status >= 500) from None
    except TimeoutError:
        raise Disconnected(f"{url} does not answer within {OPEN_TIMEOUT_S:.0f} seconds.", come_back=True) from None
    except ssl.SSLCertVerificationError as error:
        raise Untrusted(
            f"the certificate of {url} is not trusted: {error.verify_message.rstrip('.')}.", come_back=False
        ) from None
    except ssl.SSLError:
        raise Disconnected(f"{url} does not speak TLS. Is its address ws:// or http://?", come_back=False) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise Disconnected(f"no server can be reached at {url}: {reason}.", come_back=True) from None
    except (InvalidURI, InvalidProxy, ValueError) as error:
        raise Disconnected(f"{error}. An address looks like ws://127.0.0.1:8000/ws.", come_back=False) from None
    except InvalidHandshake as error:
        raise Disconnected(f"{url} does not speak WebSocket: {error}.", come_back=True) from None


def _reason(body: bytes) -> str:
    """Returns the sentence in the body of a refused handshake. A proxy may send text instead of JSON."""
    try:
        told = str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        told = body.decode("utf-8", "replace").partition("\n")[0].strip()
    return told if told.isprintable() else ""


def _socket_address(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if parts.scheme in _SCHEMES and not path.endswith(SOCKET_PATH):
        # The address of a server, which may be mounted below a prefix, and not the one of its socket.
        path += SOCKET_PATH
    return parts._replace(scheme=_SCHEMES.get(parts.scheme, parts.scheme), path=path or SOCKET_PATH).geturl()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
