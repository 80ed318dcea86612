"""Sockets of other protocols: who is refused before the upgrade, and a client that does not read."""

import asyncio
import json
from dataclasses import replace
from typing import Any, cast

import pytest
from starlette.datastructures import URL, Address
from starlette.responses import Response
from starlette.websockets import WebSocket

from antiphon.gateway import socket as gateway_socket
from antiphon.gateway.openai_realtime import error_body
from antiphon.gateway.socket import SocketSender, admit
from antiphon.protocol.closing import TOO_SLOW
from antiphon.protocol.limits import FRAME_LIMIT_EXTENSION
from antiphon.security.admission import AdmissionRefused, Caller, RefusalKind
from antiphon.storage.base import StoreUnavailable
from tests.fakes.calls import ScriptedServers
from tests.fakes.gateway import gateway_deps


class FakeSocket:
    """A socket before its upgrade, or one whose client does not read."""

    def __init__(self) -> None:
        self.client = Address("192.0.2.1", 4000)
        self.url = URL("ws://test/v1/realtime")
        self.frame_limits: list[int] = []
        self.scope: dict[str, Any] = {"extensions": {FRAME_LIMIT_EXTENSION: {"set": self.frame_limits.append}}}
        self.denied: Response | None = None
        self.closed: list[int] = []
        self.reads = asyncio.Event()

    async def send_denial_response(self, response: Response) -> None:
        self.denied = response

    async def send_text(self, frame: str) -> None:
        await self.reads.wait()

    async def close(self, code: int, reason: str) -> None:
        self.closed.append(code)


class ClosedDoor:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def admit(self, key: str | None, *, address: str | None, route: str) -> Caller:
        raise self._error


def as_socket(fake: FakeSocket) -> WebSocket:
    return cast(WebSocket, fake)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (AdmissionRefused(RefusalKind.UNAUTHENTICATED, "no"), 401, "invalid_api_key"),
        (AdmissionRefused(RefusalKind.BLOCKED, "no", retry_after_s=2.5), 403, "blocked"),
        (AdmissionRefused(RefusalKind.FULL, "no", retry_after_s=2.5), 429, "rate_limit_exceeded"),
        (AdmissionRefused(RefusalKind.WRONG_TOKENS, "no", retry_after_s=2.5), 429, "rate_limit_exceeded"),
        (StoreUnavailable("gone"), 503, "unavailable"),
    ],
)
async def test_a_client_that_is_not_admitted_gets_an_http_error(
    servers: ScriptedServers, error: Exception, status: int, code: str
) -> None:
    deps = replace(gateway_deps(servers.open(text=[])), admission=ClosedDoor(error))
    socket = FakeSocket()
    assert await admit(as_socket(socket), deps, "key", error_body) is None
    assert socket.denied is not None
    assert socket.denied.status_code == status
    assert json.loads(bytes(socket.denied.body))["error"]["code"] == code
    assert socket.frame_limits == []


async def test_an_admitted_client_may_send_longer_frames(servers: ScriptedServers) -> None:
    socket = FakeSocket()
    caller = await admit(as_socket(socket), gateway_deps(servers.open(text=[])), "key", error_body)
    assert caller is not None
    assert socket.frame_limits == [gateway_socket.MAX_FRAME_BYTES]


async def test_a_client_that_does_not_read_is_closed() -> None:
    socket = FakeSocket()
    sender = SocketSender(as_socket(socket))
    writing = asyncio.create_task(sender.write())
    for _ in range(10):
        sender.send("x" * (1 << 20))
        await asyncio.sleep(0)
    assert sender.closing is TOO_SLOW
    socket.reads.set()
    await writing
    assert socket.closed == [TOO_SLOW.code]
