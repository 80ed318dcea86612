"""A Gemini Live server on loopback, over TLS, to which the unmodified SDK connects.

It accepts the mixed case that the SDK sends, sends camelCase, checks what Google's server checks, and keeps what it
received. What it says is up to the test: it plays a part (`Part`) for each connection.
"""

import asyncio
import atexit
import base64
import binascii
import json
import os
import re
import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, Final, Self
from unittest.mock import patch

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from antiphon.models.providers.gemini_connect import GeminiClient
from antiphon.sim.certificates import Certificates, make_certificates

KEY: Final = "test-key-0123456789"
PATH: Final = re.compile(
    r"/+ws/google\.ai\.generativelanguage\.v1(beta|alpha)?\.GenerativeService\.BidiGenerateContent"
)
SETUP_COMPLETE: Final = {"setupComplete": {"sessionId": "session-1"}}
INVALID: Final = "Request contains an invalid argument."
CLIENT_KINDS: Final = {"setup", "clientContent", "realtimeInput", "toolResponse", "contextUpdate"}
OPAQUE: Final = {"args", "response", "parameters", "parametersJsonSchema"}
"""Fields whose inner names are not the protocol's."""


@dataclass(frozen=True)
class ModelRules:
    """What Google's server demands for a model."""

    history_only: bool = False
    """`clientContent` is taken as declared history, and refused afterwards."""
    scheduling: bool = True
    behavior: bool = True
    thinking: bool | None = None
    """Whether a thinking configuration is required (True) or refused (False)."""


RULES: Final[Mapping[str, ModelRules]] = {
    "models/gemini-3.8-live": ModelRules(thinking=False),
    "models/gemini-3.8-live-extended-thinking": ModelRules(scheduling=False, thinking=True),
    "models/gemini-3.1-flash-live-preview": ModelRules(history_only=True, scheduling=False, behavior=False),
    "models/gemini-2.5-flash-native-audio-preview-12-2025": ModelRules(),
}


class Closing(Exception):
    """The server closes the connection."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


@dataclass
class Client:
    """One connection, as the server sees it."""

    socket: ServerConnection
    raw: list[Any] = field(default_factory=list)
    """All messages of the client, as they came."""
    received: list[dict[str, Any]] = field(default_factory=list)
    """All messages after the setup, in camelCase."""
    setup: dict[str, Any] = field(default_factory=dict)
    seeded: bool = False
    """Whether the declared history has come."""

    @property
    def rules(self) -> ModelRules:
        return RULES.get(self.setup.get("model", ""), ModelRules())

    @property
    def declares_history(self) -> bool:
        return bool(self.setup.get("historyConfig", {}).get("initialHistoryInClientContent"))

    async def send(self, message: Mapping[str, Any] | str) -> None:
        with suppress(ConnectionClosed):
            await self.socket.send(message if isinstance(message, str) else json.dumps(message))

    async def say(self, **content: Any) -> None:
        await self.send({"serverContent": content})

    async def close(self, code: int, reason: str = "") -> None:
        await self.socket.close(code, reason)

    async def cut(self) -> None:
        """Loses the connection without a close frame."""
        self.socket.transport.abort()
        await self.socket.wait_closed()

    async def receive(self) -> dict[str, Any]:
        """Returns the next message in camelCase. Raises `Closing` if it breaks a rule."""
        raw = json.loads(await self.socket.recv())
        self.raw.append(raw)
        message: dict[str, Any] = camel_case(raw)
        if len(message) != 1 or not message.keys() <= CLIENT_KINDS:
            raise Closing(1007, f'Invalid JSON payload received. Unknown name "{next(iter(message), "")}"')
        if not self.setup:
            if "setup" not in message:
                raise Closing(1007, "setup must be the first message and only the first")
            self._check_setup(message["setup"])
            self.setup = message["setup"]
            return message
        self._check(message)
        self.received.append(message)
        return message

    def _check_setup(self, setup: dict[str, Any]) -> None:
        rules = RULES.get(setup.get("model", ""), ModelRules())
        if not str(setup.get("model", "")).startswith("models/"):
            raise Closing(1007, "setup.model must begin with models/")
        thinks = "thinkingConfig" in setup.get("generationConfig", {})
        if rules.thinking is not None and thinks is not rules.thinking:
            raise Closing(1007, "Thinking level is not supported for this model")
        declared = [each for tool in setup.get("tools", []) for each in tool.get("functionDeclarations", [])]
        if any("behavior" in each for each in declared) and not rules.behavior:
            raise Closing(1007, INVALID)

    def _check(self, message: dict[str, Any]) -> None:
        match message:
            case {"setup": _}:
                raise Closing(1007, "setup must be the first message and only the first")
            case {"clientContent": content}:
                if self.declares_history and not self.seeded:
                    self.seeded = bool(content.get("turnComplete"))
                elif self.rules.history_only or (
                    any(turn["role"] == "model" for turn in content.get("turns", []))
                    and "gemini-3" in self.setup["model"]
                ):
                    raise Closing(1007, INVALID)
            case {"toolResponse": {"functionResponses": responses}}:
                for each in responses:
                    if not each.get("id"):
                        raise Closing(1007, "Function response without an id")
                    if "scheduling" in each and not self.rules.scheduling:
                        raise Closing(1007, "Function response scheduling is not supported for this model")
            case {"realtimeInput": {"audio": audio}}:
                if not audio["mimeType"].startswith("audio/pcm"):
                    raise Closing(1007, INVALID)
                audio["data"] = decode(audio["data"])


Part = Callable[[Client], Awaitable[None]]


async def be_silent(client: Client) -> None:
    """Completes the setup, and only listens."""
    await client.receive()
    await client.send(SETUP_COMPLETE)
    while True:
        await client.receive()


class GeminiServer:
    """All servers of a process use one port, one after another: the SDK's client is then made once per model."""

    def __init__(self, part: Part = be_silent, *, refuses: tuple[int, Any, Mapping[str, str]] | None = None) -> None:
        """`refuses` is the HTTP status, body and headers with which upgrades are refused."""
        self.clients: list[Client] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self._part = part
        self._refuses = refuses
        self._server: Server | None = None
        self._arrived = asyncio.Event()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{listener().getsockname()[1]}"

    @property
    def client(self) -> Client:
        """The last one."""
        return self.clients[-1]

    async def connected(self, count: int = 1) -> Client:
        """Waits until so many connections were made and set up, and returns the last."""
        while len(self.clients) < count or not self.clients[count - 1].setup:
            self._arrived.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), 0.01)
        return self.clients[count - 1]

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._serve,
            sock=listener().dup(),
            ssl=certificates().server_context(),
            process_request=self._admit,
            ping_interval=None,
            max_size=None,
            close_timeout=0.5,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.paths.append(request.path)
        self.keys.append(request.headers.get("x-goog-api-key"))
        if self._refuses is not None:
            status, body, headers = self._refuses
            sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            fields = Headers({"Content-Length": str(len(sent)), "Connection": "close", **headers})
            return Response(status, HTTPStatus(status).phrase, fields, sent)
        if not PATH.fullmatch(request.path):
            return connection.respond(HTTPStatus.NOT_FOUND, "no such method")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        client = Client(connection)
        self.clients.append(client)
        self._arrived.set()
        try:
            await self._part(client)
        except Closing as closing:
            await connection.close(closing.code, closing.reason)
        except ConnectionClosed:
            pass


def camel_case(value: Any) -> Any:
    """Writes the names of all fields in camelCase, as protobuf's JSON accepts both."""
    if isinstance(value, list):
        return [camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): inner for key, inner in value.items()}
    return {key: inner if key in OPAQUE else camel_case(inner) for key, inner in named.items()}


def decode(data: str) -> bytes:
    """Decodes base64 in either alphabet, and nothing else."""
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        raise Closing(1007, INVALID) from None


def encode(pcm: bytes) -> str:
    return base64.urlsafe_b64encode(pcm).decode()


@cache
def listener() -> socket.socket:
    """It is open as long as the process runs, so that the port is the same for all servers."""
    # The protocol must be named: asyncio sends small messages at once only if it knows that it is TCP.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    # Closed before warnings about open sockets would be raised.
    atexit.register(bound.close)
    return bound


@cache
def certificates() -> Certificates:
    folder = Path(mkdtemp(prefix="antiphon-tls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return make_certificates(folder)


@cache
def gemini_client(model: str, key: str | None = KEY) -> GeminiClient:
    """A client that trusts the servers of this module, by the variable that users set."""
    with patch.dict(os.environ, {"SSL_CERT_FILE": str(certificates().ca)}):
        return GeminiClient(model, f"https://127.0.0.1:{listener().getsockname()[1]}", key)
