"""Secrets for tools, from the environment. A tool gets only those that its schema names."""

from collections.abc import Mapping
from typing import Final

from antiphon.telemetry.secrets import conceal
from antiphon.tools.context import Offer, SessionView, ToolView
from antiphon.tools.errors import ErrorType, ToolError

NOT_SET_UP: Final = "That isn't set up on this server yet."


def offer_secrets(environment: Mapping[str, str]) -> Offer:
    def offer(session: SessionView, tool: ToolView) -> DeclaredSecrets:
        return DeclaredSecrets(environment, tool)

    return offer


class DeclaredSecrets:
    def __init__(self, environment: Mapping[str, str], tool: ToolView) -> None:
        self._environment = environment
        self._tool = tool

    def get(self, name: str) -> str:
        if name not in self._tool.secrets:
            raise PermissionError(f'{self._tool.id} does not list "{name}" in its schema\'s "secrets"')
        value = self._environment.get(name, "")
        if not value:
            raise ToolError(
                ErrorType.PERMANENT,
                NOT_SET_UP,
                suggestion=f"Whoever runs this server must set the environment variable {name}.",
            )
        conceal(value)
        return value

    def __repr__(self) -> str:
        return f"<secrets of {self._tool.id}>"


def missing_secrets(names: tuple[str, ...], environment: Mapping[str, str]) -> list[str]:
    return [name for name in names if not environment.get(name)]
