"""Why a connection cannot be opened, in words."""

from http import HTTPStatus

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from antiphon.client import Disconnected
from antiphon.client.connection import dial

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"error":{"code":"wrong_origin","message":"Not from here."}}', "with HTTP 403: Not from here."),
        ("Forbidden by the proxy.\nGo away.", "with HTTP 403: Forbidden by the proxy."),
        ('{"detail":"no"}', 'with HTTP 403: {"detail":"no"}'),
        ("\x1b[31mred", "with HTTP 403."),
        ("", "with HTTP 403."),
    ],
)
async def test_a_refused_handshake_gives_the_reason_of_the_server(body: str, told: str) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus.FORBIDDEN, body)

    async def never(connection: ServerConnection) -> None:
        raise AssertionError

    async with serve(never, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(Disconnected) as refused:
            await dial(f"ws://127.0.0.1:{port}/ws")
    assert str(refused.value).endswith(f"refuses the connection {told}")
    assert not refused.value.come_back
