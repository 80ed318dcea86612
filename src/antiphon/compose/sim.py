"""Simulators of the providers: a fault injector in front of the gateway's endpoints, and the offline assistant behind.

Nothing of the user's own settings is used but the speech engines and the folder of their models: the data is in memory,
and the assistant has no tools but the client's.
"""

import socket
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from starlette.applications import Starlette
from starlette.types import ASGIApp

from antiphon.authoring.adapters import ADAPTERS
from antiphon.compose.app import App, load_tools, open_app
from antiphon.compose.voice import open_voice
from antiphon.config import Model, Settings, Storage, Tools
from antiphon.errors import AntiphonError
from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.routes import routes
from antiphon.models.base import TextModel
from antiphon.models.completeness import Completeness
from antiphon.models.live import ModelFactory
from antiphon.models.providers.references import Provider, parse
from antiphon.security.origin import own_authority
from antiphon.security.quota import Quota
from antiphon.server.admission import Admission
from antiphon.server.authenticator import Authenticator
from antiphon.server.serving import listen
from antiphon.session.hub import Hub
from antiphon.sim.assistant import ToolAssistant
from antiphon.sim.chaos import make_chaos
from antiphon.sim.control import Controlled, make_control
from antiphon.sim.faults import FaultBook
from antiphon.sim.injector import FaultInjector
from antiphon.sim.message_log import MessageLog
from antiphon.sim.ollama import OllamaApi
from antiphon.sim.script import ScriptError, Vocabulary, parse_script
from antiphon.sim.serving import serving
from antiphon.sim.stream_injector import StreamInjector
from antiphon.sim.vendors import ollama
from antiphon.sim.vendors.base import Options, Vendor
from antiphon.sim.vendors.gemini import GeminiLive
from antiphon.sim.vendors.openai import OpenAIRealtime
from antiphon.sim.wire import Wires
from antiphon.speech.base import needs_extra
from antiphon.tools.spec import Mode

if TYPE_CHECKING:
    from antiphon.sim.certificates import Certificates

HOST: Final = "127.0.0.1"
"""Simulators listen on loopback only: they are tools for tests, without the protections of the server."""
MODEL_NAME: Final = "simulated"
UNLIMITED: Final = Quota({})


class Simulated(StrEnum):
    """Which provider is simulated."""

    GEMINI_LIVE = "gemini-live"
    OPENAI_REALTIME = "openai-realtime"
    OLLAMA = "ollama"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorPlan:
    """What a simulator is started with."""

    simulated: Simulated
    port: int = 0
    """0 is any free port."""
    control_port: int | None = None
    options: Options = field(default_factory=Options)
    script: Path | None = None
    chaos: int | None = None
    """The seed of random faults."""
    log_path: Path | None = None
    tls_dir: Path | None = None
    """The folder of the certificates; None serves without TLS."""
    model: str = "builtin"
    """The text model that answers, as in the setting `model.text`."""


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulator that runs."""

    url: str
    control_url: str | None
    certificates: "Certificates | None"
    injector: Controlled


class LogError(AntiphonError):
    """The log file cannot be written."""

    code = "log"


@asynccontextmanager
async def open_simulator(
    plan: SimulatorPlan, settings: Settings, *, voice: ModelFactory | None = None
) -> AsyncIterator[Simulator]:
    """Runs a simulator for the duration of the block. `voice` replaces the local voice."""
    async with AsyncExitStack() as stack:
        # What can be wrong with the arguments is found before anything is loaded.
        vocabulary, vendor = _vendor(plan)
        faults = FaultBook(None if plan.chaos is None else make_chaos(plan.chaos, vocabulary))
        if plan.script is not None:
            faults.add(parse_script(_read(plan.script), vocabulary, str(plan.script)))
        certificates = None if plan.tls_dir is None else _certificates(plan.tls_dir)
        sockets = _listen(plan.port, stack)
        control = None if plan.control_port is None else _listen(plan.control_port, stack)
        log = MessageLog(time.monotonic, _open_log(plan.log_path, stack))

        reference = parse(plan.model)

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="antiphon-sim-")))
        known = load_tools(_isolated(settings, plan, folder, ())).tools
        # The application itself has no tools: a provider has none either, but those of its client.
        app = await stack.enter_async_context(open_app(_isolated(settings, plan, folder, tuple(known))))
        assistant = ToolAssistant(known)
        await assistant.compile()
        is_builtin = reference.provider is Provider.BUILTIN
        model: TextModel = assistant
        if not is_builtin:
            model = await stack.enter_async_context(app.text_model(reference, await app.assistant()))
        wires = Wires()
        injector: FaultInjector | StreamInjector
        if vendor is None:
            api = OllamaApi(model, plan.options.extra_models).make_app()
            injector = StreamInjector(api, faults=faults, log=log, wire_of=wires.of)
        else:
            if voice is None:
                voice = await _open_voice(app, model, assistant, stack)
            endpoint = _make_endpoint(app, app.hub(app.ladders(model, voice)), stack)
            injector = FaultInjector(endpoint, vendor, faults=faults, log=log, wire_of=wires.of)
        await stack.enter_async_context(serving(injector, sockets, wires=wires, certificates=certificates))
        control_url = None
        if control is not None:
            await stack.enter_async_context(serving(make_control(injector, vocabulary), control, wires=Wires()))
            control_url = _url(control, "http")
        url = _url(sockets, "http" if certificates is None else "https")
        yield Simulator(url, control_url, certificates, injector)


def _vendor(plan: SimulatorPlan) -> tuple[Vocabulary, Vendor | None]:
    vendor: Vendor
    match plan.simulated:
        case Simulated.GEMINI_LIVE:
            vendor = GeminiLive(plan.options, time.monotonic)
        case Simulated.OPENAI_REALTIME:
            vendor = OpenAIRealtime(plan.options, time.monotonic)
        case Simulated.OLLAMA:
            return ollama.VOCABULARY, None
    return vendor.vocabulary, vendor


def _certificates(folder: Path) -> "Certificates":
    with needs_extra("sim", "a simulator with TLS"):
        from antiphon.sim.certificates import make_certificates
    return make_certificates(folder)


def _listen(port: int, stack: AsyncExitStack) -> list[socket.socket]:
    sockets = listen(HOST, port)
    for each in sockets:
        stack.callback(each.close)
    return sockets


def _url(sockets: list[socket.socket], scheme: str) -> str:
    return f"{scheme}://{own_authority(HOST, int(sockets[0].getsockname()[1]))}"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ScriptError(f"the script {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ScriptError(f"the script {path} is not UTF-8 text.") from None


def _open_log(path: Path | None, stack: AsyncExitStack) -> TextIO | None:
    if path is None:
        return None
    try:
        return stack.enter_context(path.open("a", encoding="utf-8"))
    except OSError as error:
        raise LogError(f"the log {path} cannot be written: {error.strerror}. Choose another file with --log.") from None


def _isolated(settings: Settings, plan: SimulatorPlan, folder: Path, disabled: tuple[str, ...]) -> Settings:
    return Settings(
        project_dir=folder,
        data_dir=folder,
        shared_models_dir=settings.models_dir,
        model=Model(text=plan.model, local_first=False),
        ollama=settings.ollama,
        speech=settings.speech,
        tools=Tools(paths=(), disable=disabled),
        storage=Storage(url="memory"),
    )


async def _open_voice(app: App, model: TextModel, assistant: ToolAssistant, stack: AsyncExitStack) -> ModelFactory:
    def completeness(text: str) -> Completeness:
        return assistant.completeness(text, Mode.VOICE)

    voice = await stack.enter_async_context(open_voice(app.settings, model, completeness, app.model_health))
    return voice.factory


def _make_endpoint(app: App, hub: Hub, stack: AsyncExitStack) -> ASGIApp:
    stack.push_async_callback(hub.aclose)
    clock, stores = app.database.clock, app.database
    authenticator = Authenticator(stores.tokens, stores.blocks, clock, required=False, quota=UNLIMITED)
    deps = GatewayDeps(
        hub=hub,
        admission=Admission(authenticator, UNLIMITED, clock),
        quota=UNLIMITED,
        clock=clock,
        adapters=ADAPTERS,
        model_name=MODEL_NAME,
    )
    return Starlette(routes=routes(deps))
