"""The application: routes behind the guard, over the sessions of this process."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import ASGIApp

from antiphon.security.quota import Quota
from antiphon.server import page
from antiphon.server.door import Door
from antiphon.server.guard import Guard
from antiphon.server.unrouted import refuse_method, refuse_path
from antiphon.server.ws import Endpoint
from antiphon.session.hub import Hub


def make_app(
    hub: Hub,
    door: Door,
    routes: Sequence[BaseRoute],
    *,
    origins: Collection[str],
    quota: Quota | None = None,
) -> ASGIApp:
    """`quota` takes the place of the usual limits."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await hub.aclose()

    socket = WebSocketRoute("/ws", Endpoint(hub, door, quota or Quota()).talk)
    app = Starlette(
        routes=[socket, *page.routes(), *routes],
        exception_handlers={404: refuse_path, 405: refuse_method},
        lifespan=lifespan,
    )
    return Guard(app, origins=origins)
