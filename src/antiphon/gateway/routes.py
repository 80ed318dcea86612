"""The routes of the gateway: every endpoint of another protocol."""

from starlette.routing import BaseRoute

from antiphon.gateway.deps import GatewayDeps


def routes(deps: GatewayDeps) -> list[BaseRoute]:
    return []
