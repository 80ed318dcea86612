"""The routes of the gateway: every endpoint of another protocol."""

from starlette.routing import BaseRoute

from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.gemini_live import gemini_routes
from antiphon.gateway.openai_realtime import realtime_routes


def routes(deps: GatewayDeps) -> list[BaseRoute]:
    return [*realtime_routes(deps), *gemini_routes(deps)]
