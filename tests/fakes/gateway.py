"""A gateway over a server in the same process, and what its sessions told the endpoint."""

from dataclasses import dataclass, field
from typing import Any

from antiphon.authoring.adapters import ADAPTERS
from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.session import GatewaySession, Opening
from antiphon.protocol import server_messages as s
from antiphon.protocol.closing import Close
from antiphon.security.admission import Caller
from antiphon.security.quota import Quota
from antiphon.session.runner import Observed
from tests.fakes.calls import LoopClock, Server

ANN = Caller("ann", authenticated=True)


class OpenDoor:
    """Admits everyone as Ann."""

    async def admit(self, key: str | None, *, address: str | None, route: str) -> Caller:
        return ANN


def gateway_deps(server: Server, quota: Quota | None = None) -> GatewayDeps:
    return GatewayDeps(
        hub=server.hub,
        admission=OpenDoor(),
        quota=quota or Quota({}),
        clock=LoopClock(),
        adapters=ADAPTERS,
        model_name="scripted",
    )


@dataclass(eq=False)
class Recorded:
    """Records everything that a session tells the endpoint."""

    messages: list[s.ServerMessage] = field(default_factory=list)
    audio: list[tuple[int, bytes]] = field(default_factory=list)
    effects: list[Observed] = field(default_factory=list)
    closed: Close | None = None

    def on_message(self, message: s.ServerMessage) -> None:
        self.messages.append(message)

    def on_audio(self, turn: int, pcm: bytes) -> None:
        self.audio.append((turn, pcm))

    def on_effect(self, effect: Observed) -> None:
        self.effects.append(effect)

    def on_close(self, close: Close) -> None:
        self.closed = close

    @property
    def answers(self) -> list[str]:
        return [message.text.strip() for message in self.messages if isinstance(message, s.Response)]


async def open_session(server: Server, **opening: Any) -> tuple[GatewaySession, Recorded]:
    recorded = Recorded()
    return await GatewaySession.open(gateway_deps(server), ANN, Opening(**opening), recorded), recorded
