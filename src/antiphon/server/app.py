"""The application: routes behind the guard, over the sessions of this process."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from antiphon.security.quota import Quota
from antiphon.server.door import Door
from antiphon.server.guard import Guard
from antiphon.server.ws import Endpoint
from antiphon.session.hub import Hub


async def _greet(request: Request) -> PlainTextResponse:
    """For a person who opens the address in a browser."""
    return PlainTextResponse("Antiphon is running. Talk to it with `antiphon chat`, or over /ws and /api/chat.\n")


def make_app(
    hub: Hub,
    door: Door,
    routes: Sequence[BaseRoute],
    *,
    origins: Collection[str],
    hosts: Collection[str] = (),
    quota: Quota | None = None,
) -> ASGIApp:
    """`quota` takes the place of the usual limits."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await hub.aclose()

    socket = WebSocketRoute("/ws", Endpoint(hub, door, Quota() if quota is None else quota).talk)
    app = Starlette(routes=[socket, Route("/", _greet), *routes], lifespan=lifespan)
    return Guard(app, origins=origins, hosts=hosts)
