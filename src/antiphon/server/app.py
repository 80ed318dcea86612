"""The application: routes behind the guard, over the sessions of this process."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.types import ASGIApp

from antiphon.security.paths import versioned
from antiphon.security.quota import Quota
from antiphon.server import page
from antiphon.server.admission import Admission
from antiphon.server.authenticator import Authenticator
from antiphon.server.guard import Guard
from antiphon.server.refusals import Refusal, RefusalCode, RefusalCounts
from antiphon.server.ws import Endpoint
from antiphon.session.hub import Hub


def make_app(
    hub: Hub,
    authenticator: Authenticator,
    routes: Sequence[BaseRoute],
    *,
    origins: Collection[str],
    hosts: Collection[str] = (),
    same_origin: bool = False,
    quota: Quota | None = None,
    body_limits: Mapping[str, int] | None = None,
    refusals: RefusalCounts | None = None,
) -> ASGIApp:
    """Makes the application. `origins`, `hosts` and `same_origin` are those of the guard. `quota` replaces the default
    limits, and `body_limits` those of bodies, by their path. What the guard refuses is added to `refusals`."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await hub.aclose()

    quota = quota or Quota()
    admission = Admission(authenticator, quota, hub.clock)
    socket = WebSocketRoute("/ws", Endpoint(hub, admission, quota).talk)
    app = Starlette(
        routes=[socket, *page.routes(), *with_versions(routes)],
        exception_handlers={404: refuse_path, 405: refuse_method},
        lifespan=lifespan,
    )
    return Guard(app, origins=origins, hosts=hosts, same_origin=same_origin, body_limits=body_limits, counts=refusals)


def with_versions(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Gives every route below `/api/` its documented path below `/api/v1/`; the given one stays as an alias."""
    return [each for route in routes for each in (route, *_versions_of(route))]


def _versions_of(route: BaseRoute) -> Iterator[Route]:
    if isinstance(route, Route) and versioned(route.path) != route.path:
        yield Route(versioned(route.path), route.endpoint, methods=sorted(route.methods or ()))


MAX_PATH_CHARS: Final = 200
"""How much of a path is repeated to the client."""


async def refuse_path(request: Request, error: Exception) -> Response:
    path = request.url.path[:MAX_PATH_CHARS]
    why = f"There is nothing at {path}. GET /api/v1/openapi.json lists all routes."
    return Refusal(RefusalCode.NOT_FOUND, why).response()


async def refuse_method(request: Request, error: Exception) -> Response:
    """Lists the allowed methods: Starlette knows only those of the first route, and a path has one for each."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
    why = f"{request.method} is not allowed here. Use one of {allowed}."
    response = Refusal(RefusalCode.METHOD_NOT_ALLOWED, why).response()
    response.headers["Allow"] = allowed
    return response
