"""What the endpoints of the gateway work with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import HTTPConnection

from antiphon.clock import Clock
from antiphon.security.admission import Caller
from antiphon.security.quota import Quota
from antiphon.session.hub import Hub
from antiphon.tools.client_tool import Adapter


class Admission(Protocol):
    """Lets callers in, by the rules that hold for every endpoint of the server."""

    async def admit(self, key: str | None, *, address: str | None, route: str) -> Caller:
        """Returns who shows this API key. Raises `AdmissionRefused`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayDeps:
    hub: Hub
    admission: Admission
    quota: Quota
    clock: Clock
    adapters: Mapping[str, Adapter]
    """Make the schema of a client's tool in the format of each provider."""
    voices: Callable[[], Sequence[str]] = tuple
    """The names of the voices that a client can choose."""
    model_name: str = "antiphon"
    """The name of the server's model, for clients that do not name one."""


def address_of(connection: HTTPConnection) -> str | None:
    return connection.client.host if connection.client is not None else None
