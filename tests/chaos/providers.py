"""The simulators of the providers, in this process: the real endpoints, their rules and their faults.

Instead of speech engines they hear and speak tones, and their network is in memory. So they are fast, and always do the
same.
"""

import asyncio
from functools import cache, partial
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from uvicorn.server import ServerState

from antiphon.gateway.routes import routes
from antiphon.models.live import ModelFactory
from antiphon.models.providers.gemini_connect import GeminiClient
from antiphon.models.providers.gemini_live import GeminiLive
from antiphon.models.providers.openai_realtime import OpenAIRealtime, RealtimeEndpoint, openai_endpoint
from antiphon.models.text_live import text_factory
from antiphon.sim.actions import Action
from antiphon.sim.faults import FaultBook
from antiphon.sim.injector import FaultInjector
from antiphon.sim.message_log import MessageLog
from antiphon.sim.script import Fault, Occasion, ScriptError, Trigger
from antiphon.sim.vendors import gemini, openai
from antiphon.sim.vendors.base import Options, Vendor
from antiphon.sim.wire import SimHttp, SimWebSocket, Wires
from antiphon.tools.spec import Mode
from tests.chaos.assistant import ChaosAssistant
from tests.chaos.sound import Tones, cascade_factory
from tests.fakes.calls import LoopClock, Server
from tests.fakes.gateway import gateway_deps

GEMINI_PORT: Final = 9001
OPENAI_PORT: Final = 9002
GEMINI_MODEL: Final = "gemini-3.8-live"
OPENAI_MODEL: Final = "gpt-realtime-2"
KEY: Final = "any-key"


class SimulatedProvider:
    """A simulator, what is armed there, and what it has seen."""

    def __init__(self, vendor: Vendor, port: int, tones: Tones) -> None:
        self.port = port
        self.known = frozenset(vendor.vocabulary.actions.values())
        """The faults that it can produce."""
        self.occasions = vendor.vocabulary.occasions
        self.log = MessageLog(asyncio.get_running_loop().time)
        self.faults = FaultBook()
        model = ChaosAssistant("simulated")
        models = {Mode.TEXT: text_factory(model), Mode.VOICE: cascade_factory(tones, model)}
        self._server = Server(models=models, owner=f"provider-{port}")
        endpoint = Starlette(routes=routes(gateway_deps(self._server)))
        self._wires = Wires()
        self._injector = FaultInjector(endpoint, vendor, faults=self.faults, log=self.log, wire_of=self._wires.of)
        self._state = ServerState()

    async def start(self) -> None:
        http: Any = partial(SimHttp, wires=self._wires)
        ws: Any = partial(SimWebSocket, wires=self._wires)
        config = uvicorn.Config(
            self._injector, http=http, ws=ws, lifespan="off", log_config=None, log_level="error", access_log=False,
            ws_per_message_deflate=False, ws_ping_interval=None, ws_max_size=16 << 20,
        )  # fmt: skip
        config.load()
        make = partial(http, config=config, server_state=self._state, app_state={})
        await asyncio.get_running_loop().create_server(make, "127.0.0.1", self.port)

    def arm(self, trigger: Trigger, *actions: Action) -> None:
        self.faults.add([Fault(trigger, actions)])

    async def perform(self, *actions: Action) -> bool:
        """Performs a fault on the open connections, and returns whether there was one."""
        try:
            await self._injector.perform_now(Fault(Trigger(Occasion.NOW), actions))
        except ScriptError:
            return False
        return True

    async def aclose(self) -> None:
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
        await self._server.aclose()


def gemini_provider(tones: Tones) -> SimulatedProvider:
    return SimulatedProvider(gemini.GeminiLive(Options(), asyncio.get_running_loop().time), GEMINI_PORT, tones)


def openai_provider(tones: Tones) -> SimulatedProvider:
    return SimulatedProvider(openai.OpenAIRealtime(Options(), asyncio.get_running_loop().time), OPENAI_PORT, tones)


@cache
def _gemini_client() -> GeminiClient:
    return GeminiClient(GEMINI_MODEL, f"https://127.0.0.1:{GEMINI_PORT}", KEY)


@cache
def _openai_endpoint() -> RealtimeEndpoint:
    return openai_endpoint(OPENAI_MODEL, f"http://127.0.0.1:{OPENAI_PORT}/v1", KEY)


def gemini_rung() -> ModelFactory:
    client = _gemini_client()
    return ModelFactory(client.profile, lambda: GeminiLive(client))


def openai_rung() -> ModelFactory:
    endpoint = _openai_endpoint()
    return ModelFactory(endpoint.profile, lambda: OpenAIRealtime(endpoint, None, LoopClock()))
