"""The whole server without its sockets: stores, tools, models, sessions, routes and background work.

`serve.py` runs it behind its own sockets, and `asgi.py` inside the server of another application.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp

from antiphon import __version__
from antiphon.authoring.adapters import ADAPTERS
from antiphon.clock import SystemClock
from antiphon.compose.app import App, open_app
from antiphon.compose.hooks import load_hooks
from antiphon.compose.ladders import TextModels, VoiceModels, open_text_models, open_voice_models
from antiphon.compose.reloading import watch_tools
from antiphon.compose.summaries import open_summarizer
from antiphon.compose.warming import Warmer, keep_learning
from antiphon.config import Settings
from antiphon.continuity.energy import Ladder
from antiphon.errors import AntiphonError
from antiphon.gateway import transcription
from antiphon.gateway.chat_answer import ChatDeps
from antiphon.gateway.deps import GatewayDeps
from antiphon.gateway.http import HttpGateway
from antiphon.gateway.mcp_http import McpEndpoint
from antiphon.gateway.routes import routes as gateway_routes
from antiphon.gateway.speech import SpeechApi
from antiphon.gateway.transcription import TranscriptionApi
from antiphon.models.live import LiveProfile, ModelFactory
from antiphon.models.providers.references import NO_VOICE
from antiphon.security.admission import Caller
from antiphon.security.origin import explain_origin
from antiphon.security.quota import Quota
from antiphon.security.tokens import bearer
from antiphon.server.admission import Admission
from antiphon.server.app import make_app
from antiphon.server.authenticator import Authenticator, end_revoked
from antiphon.server.deps import HttpDeps, Model, VoiceParts
from antiphon.server.energy import offer_commands
from antiphon.server.health import LagCollector, LagMonitor, Readiness
from antiphon.server.http import routes
from antiphon.server.metrics import RefusalCollector
from antiphon.server.quota_sharing import share_quota
from antiphon.server.refusals import RefusalCounts
from antiphon.services.reminders import Scheduler
from antiphon.session.hooks import HookQueue, Hooks
from antiphon.session.hub import Hub
from antiphon.session.models import Ladders
from antiphon.session.nodes import Nodes
from antiphon.session.ringing import Listeners
from antiphon.session.speaking import Synthesize
from antiphon.storage.base import StorageError
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.metrics import StoreCollector, UnderstandingCollector
from antiphon.telemetry.tracing import tracing
from antiphon.tools.spec import Mode
from antiphon.words import dates

RESTARTING: Final = "The server is restarting."
CLEANUP_INTERVAL_S: Final = 3_600.0
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
MAX_SESSIONS: Final = 200
"""Among how many of the newest sessions of a user one is looked for that another process runs."""
MIN_CALLS_DAYS: Final = 7
"""How long the records of tool calls are kept at least, unless `storage.retention_days` is shorter. They keep a
repeated delivery of a call from running it twice."""

log = get_logger(__name__)


class InsecureError(AntiphonError):
    """The server would be open to anyone."""

    code = "insecure"


class OriginError(AntiphonError):
    """An entry of `server.origins` is not an origin."""

    code = "origin"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a server."""

    required: bool
    """Whether callers must show a token."""
    origins: Collection[str]
    """The pages that may use it, besides those of `server.origins`."""
    hosts: Collection[str] = ()
    """Names and addresses that it answers to, besides those of the origins."""
    same_origin: bool = False
    """Whether a page may use it that comes from the host and port that the request was sent to."""


@dataclass(slots=True, kw_only=True)
class ComposedServer:
    """A server that is ready to answer. `asgi` is its application, without its start and its end."""

    app: App
    texts: TextModels
    voices: VoiceModels | None
    hub: Hub
    access: Access
    asgi: ASGIApp
    lag: LagMonitor
    _deps: HttpDeps
    _scheduler: Scheduler
    _http_gateway: HttpGateway
    _mcp: McpEndpoint
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Begins the work in the background. To be called when requests are accepted, since the start does not need
        it."""
        app, texts = self.app, self.texts
        running = [
            _clean_up(app),
            end_revoked(self.hub, app.database.tokens),
            self._deps.nodes.run(),
            share_quota(self._deps.quota, app.database.limits, app.database.clock),
            *(Warmer(each.model, each.factory.health, app.composer, app.registry).run() for each in texts.opened),
            keep_learning(texts.assistant, app.registry),
            asyncio.to_thread(dates.warm),
            app.services.knowledge.warm(),
            asyncio.to_thread(app.registry.snapshot().warm),
        ]
        if not app.registry.locked:
            running.append(watch_tools(app.settings, app.executor))
        self._tasks += [asyncio.create_task(each) for each in running]
        self._scheduler.start()

    async def drain(self, time_left_s: float) -> None:
        """Tells clients to reconnect, and lets answers under way finish."""
        self._deps.stopping.set()
        # What is due from now on is left to the next process, whose clients it will find connected.
        await self._scheduler.aclose()
        try:
            await asyncio.gather(
                self.hub.drain(time_left_s, RESTARTING),
                self._http_gateway.drain(time_left_s),
                self._mcp.drain(time_left_s),
            )
        finally:
            self._deps.must_end.set()

    async def stop(self) -> None:
        """Ends the work in the background."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def compose_server(
    settings: Settings,
    decide_access: Callable[[App], Awaitable[Access]],
    *,
    announce: Callable[[str], None] = lambda line: None,
    voice_model: ModelFactory | None = None,
    needs_voice: bool = False,
    quota: Quota | None = None,
    hooks: Hooks | None = None,
) -> AsyncIterator[ComposedServer]:
    """Opens everything that a server consists of, and closes it at the end of the block.

    `decide_access` is called before the voice is loaded, which takes seconds. `announce` is called with lines for
    people. `quota` replaces the default limits. With `needs_voice`, a missing voice is an error. `hooks` are called
    besides those of the settings.
    """
    check_origins(settings.server.origins)
    queue = HookQueue([each for each in (load_hooks(settings), hooks) if each is not None])
    async with AsyncExitStack() as stack:
        # First, since the gate and the sessions look for a tracer when they are made.
        await stack.enter_async_context(tracing(os.environ, __version__, announce))
        stack.push_async_callback(queue.aclose)
        app = await stack.enter_async_context(open_app(settings, queue.note_call))
        texts = await open_text_models(app, stack)
        app.services.images.use_text_model(texts.best.model)
        access = await decide_access(app)
        voices = None
        if voice_model is None:
            voices = await open_voice_models(app, texts, stack, announce=announce, is_needed=needs_voice)
        summarizer = await stack.enter_async_context(open_summarizer(settings, texts.best.model))
        hub = app.hub(*_find_models(texts, voices, voice_model), summarizer, queue)
        stores = app.database
        scheduler = Scheduler(app.services.reminders, Listeners(hub, stores.reminders, stores.clock))
        stack.push_async_callback(scheduler.aclose)
        quota, lag = quota or Quota(), LagMonitor()
        authenticator = Authenticator(stores.tokens, stores.blocks, stores.clock, required=access.required, quota=quota)
        nodes = Nodes(
            hub, stores.commands, stores.changes, lambda user: stores.overview.sessions(MAX_SESSIONS, user=user)
        )
        offer_commands(nodes)
        refused: RefusalCounts = Counter()
        deps = _make_deps(
            app,
            hub=hub,
            nodes=nodes,
            authenticator=authenticator,
            refused=refused,
            texts=texts,
            voices=voices,
            quota=quota,
            lag=lag,
        )
        gateway = GatewayDeps(
            hub=hub,
            admission=Admission(authenticator, quota, stores.clock),
            quota=quota,
            clock=stores.clock,
            adapters=ADAPTERS,
            voices=lambda: tuple(each.id for each in deps.voices()),
            model_name=texts.best.reference.public_name,
        )
        http_gateway = _make_http_gateway(app, gateway, deps, texts, voices)
        mcp = McpEndpoint(gateway, app.executor, nodes, stopping=deps.stopping, must_end=deps.must_end)
        await stack.enter_async_context(mcp.running())
        asgi = make_app(
            hub,
            authenticator,
            [*routes(deps), *gateway_routes(gateway), *http_gateway.routes(), *mcp.routes()],
            origins={*access.origins, *settings.server.origins},
            hosts=access.hosts,
            same_origin=access.same_origin,
            quota=quota,
            body_limits={transcription.PATH: transcription.MAX_BODY_BYTES},
            refusals=refused,
        )
        server = ComposedServer(
            app=app,
            texts=texts,
            voices=voices,
            hub=hub,
            access=access,
            asgi=asgi,
            lag=lag,
            _deps=deps,
            _scheduler=scheduler,
            _http_gateway=http_gateway,
            _mcp=mcp,
        )
        try:
            yield server
        finally:
            await server.stop()


def check_origins(origins: Sequence[str]) -> None:
    problems = [problem for problem in map(explain_origin, origins) if problem is not None]
    if problems:
        raise OriginError(" ".join(problems))


def _find_models(
    texts: TextModels, voices: VoiceModels | None, voice_model: ModelFactory | None
) -> tuple[Ladders, Synthesize | None]:
    """Returns the models of the server, and what speaks without a model."""
    monotonic = SystemClock().monotonic
    ladders = {Mode.TEXT: Ladder.of(Mode.TEXT, texts.factories, monotonic)}
    synthesize = None
    if voices is not None:
        ladders[Mode.VOICE] = Ladder.of(Mode.VOICE, voices.factories, monotonic)
        speaking = [voice for voice in voices.rungs.values() if voice.synthesizer is not None]
        synthesize = speaking[0].synthesize if speaking else None
    elif voice_model is not None:
        ladders[Mode.VOICE] = Ladder.of_one(Mode.VOICE, voice_model, monotonic)
    return ladders, synthesize


def _make_deps(
    app: App,
    *,
    hub: Hub,
    nodes: Nodes,
    authenticator: Authenticator,
    refused: RefusalCounts,
    texts: TextModels,
    voices: VoiceModels | None,
    quota: Quota,
    lag: LagMonitor,
) -> HttpDeps:
    stores, stopping = app.database, asyncio.Event()

    async def identify(request: Request) -> Caller | None:
        address = request.client.host if request.client is not None else None
        token = bearer(request.headers.get("authorization"))
        return await authenticator.identify(token, address=address, route=request.url.path)

    healths = {Mode.TEXT: [each.named_health for each in texts.opened], Mode.VOICE: voices.healths if voices else []}
    models = list_models(Mode.TEXT, texts.factories)
    if voices is not None:
        models += list_models(Mode.VOICE, voices.factories)
    return HttpDeps(
        hub=hub,
        nodes=nodes,
        conversations=stores.conversations,
        voice_calls=stores.voice_calls,
        knowledge=app.services.knowledge,
        registry=app.registry,
        identify=identify,
        ready=Readiness(stores.check, stopping).find_problems,
        clock=stores.clock,
        operator=app.operator(),
        quota=quota,
        models=lambda: models,
        voices=lambda: voices.best.voices if voices else (),
        images=app.services.images.archive,
        recordings=app.services.recordings.archive,
        collectors=[
            LagCollector(lag.stats),
            UnderstandingCollector(texts.assistant.stats),
            StoreCollector(stores.stats),
            RefusalCollector(authenticator.refusals, refused, quota),
        ],
        stopping=stopping,
        model_healths=healths,
        voice_parts=_find_voice_parts(app.settings, hub, voices),
        answers_locally=app.settings.model.local_first,
    )


def _find_voice_parts(settings: Settings, hub: Hub, voices: VoiceModels | None) -> VoiceParts:
    speech = None if voices is None else voices.speech
    return VoiceParts(
        is_wanted=settings.model.voice != NO_VOICE,
        is_there=hub.has_voice,
        stt=None if speech is None else speech.stt,
        tts=None if speech is None or speech.synthesizer is None else speech.tts,
    )


def list_models(mode: Mode, factories: Mapping[int, ModelFactory]) -> list[Model]:
    """Lists each model once, the best one first."""
    levels: dict[LiveProfile, list[int]] = {}
    for level, factory in sorted(factories.items(), reverse=True):
        levels.setdefault(factory.profile, []).append(level)
    return [
        Model(profile.name, mode, profile.needs_network, current=max(factories) in each, levels=tuple(each))
        for profile, each in levels.items()
    ]


def _make_http_gateway(
    app: App, gateway: GatewayDeps, deps: HttpDeps, texts: TextModels, voices: VoiceModels | None
) -> HttpGateway:
    """Makes the HTTP endpoints that stock clients of OpenAI use."""
    speech, clock, quota = None if voices is None else voices.speech, deps.clock, deps.quota
    return HttpGateway(
        gateway,
        chat=ChatDeps(
            model=texts.best.model,
            health=texts.best.factory.health,
            composer=app.composer,
            executor=app.executor,
            blocks=app.database.blocks,
            zone=deps.hub.zone,
            clock=clock,
        ),
        transcription=TranscriptionApi(None if speech is None else speech.recognizer, quota, clock),
        speech=SpeechApi(
            None if speech is None else speech.synthesizer, app.settings.speech.voice, quota=quota, clock=clock
        ),
        stopping=deps.stopping,
        must_end=deps.must_end,
    )


async def _clean_up(app: App) -> None:
    """Periodically ends sessions that cannot be resumed, and deletes data older than `storage.retention_days`.

    The records of tool calls are deleted without that setting, too, once no session can need them.
    """
    clock, stores = app.database.clock, app.database
    days = app.settings.storage.retention_days
    # A call may have started long before the last use of its session, so a day is added.
    calls_ms = max(MIN_CALLS_DAYS * DAY_MS, app.settings.continuity.resume_hours * HOUR_MS + DAY_MS)
    if days:
        calls_ms = min(calls_ms, days * DAY_MS)
    while True:
        now_ms = clock.now_ms()
        try:
            ended = await stores.sessions.sweep(now_ms)
            await stores.confirmations.sweep(now_ms)
            await stores.commands.sweep(now_ms - HOUR_MS)
            await stores.limits.sweep()
            await app.services.reminders.sweep()
            deleted = await stores.calls.delete_before(now_ms - calls_ms)
            if days:
                before_ms = now_ms - days * DAY_MS
                deleted += await stores.conversations.delete_before(before_ms)
                deleted += await stores.voice_calls.delete_before(before_ms)
                deleted += await stores.audit.delete_before(before_ms)
                deleted += await stores.images.delete_before(before_ms)
                deleted += await app.services.recordings.archive.delete_before(before_ms)
            deleted += await app.services.recordings.archive.sweep()
            if ended or deleted:
                log.info("cleanup_done", sessions_ended=ended, records_deleted=deleted)
        except (StorageError, OSError) as error:
            log.error("cleanup_failed", error=str(error))
        await asyncio.sleep(CLEANUP_INTERVAL_S)
