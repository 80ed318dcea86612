"""Requests for which there is no route: refused in the same shape as all others."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from antiphon.server.desk import Refusal, RefusalCode

MAX_PATH_CHARS: Final = 200
"""The most of a path that is repeated to the client."""


async def refuse_path(request: Request, error: Exception) -> Response:
    path = request.url.path[:MAX_PATH_CHARS]
    why = f"There is nothing at {path}. GET /api/openapi.json describes what there is."
    return Refusal(RefusalCode.NOT_FOUND, why).response()


async def refuse_method(request: Request, error: Exception) -> Response:
    """Starlette knows the methods of the first route only, and a path has one for each of its methods."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
    why = f"{request.method} cannot be used here. Use one of {allowed}."
    response = Refusal(RefusalCode.METHOD_NOT_ALLOWED, why).response()
    response.headers["Allow"] = allowed
    return response
