"""The whole server: stores, tools, models, sessions and sockets."""

import asyncio
import gc
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request

from antiphon import __version__
from antiphon.authoring.adapters import ADAPTERS
from antiphon.clock import SystemClock
from antiphon.compose import (
    App,
    TextModels,
    VoiceModels,
    open_app,
    open_text_models,
    open_voice_models,
    watch_tools,
)
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
from antiphon.security.origin import explain_origin, is_loopback, is_wildcard, own_authority, own_origins
from antiphon.security.quota import Quota
from antiphon.security.tokens import bearer
from antiphon.server.admission import Admission
from antiphon.server.app import make_app
from antiphon.server.authenticator import Authenticator, end_revoked
from antiphon.server.deps import HttpDeps, Model, VoiceParts
from antiphon.server.health import LagCollector, LagMonitor, Readiness
from antiphon.server.http import routes
from antiphon.server.metrics import RefusalCollector
from antiphon.server.refusals import RefusalCounts
from antiphon.server.serving import DRAIN_S, Server, listen, machine_addresses, machine_names
from antiphon.services.reminders import Scheduler
from antiphon.services.secrets import missing_secrets
from antiphon.session.hub import Hub
from antiphon.session.models import Ladders
from antiphon.session.ringing import Listeners
from antiphon.session.speaking import Synthesize
from antiphon.storage.base import StorageError
from antiphon.telemetry.log import get_logger
from antiphon.telemetry.metrics import StoreCollector, UnderstandingCollector
from antiphon.telemetry.tracing import tracing
from antiphon.tools.spec import Mode
from antiphon.words import dates

RESTARTING: Final = "The server is restarting."
SWITCH_S: Final = 0.001
"""How long a thread may run Python code before another one gets its turn. With Python's default of 5 ms, each hop to a
model or to the database costs a busy server that much."""
CLEANUP_INTERVAL_S: Final = 3_600.0
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
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


async def run_server(
    settings: Settings,
    *,
    host: str | None = None,
    port: int | None = None,
    insecure: bool = False,
    announce: Callable[[str], None] = lambda line: None,
    voice_model: ModelFactory | None = None,
    needs_voice: bool = False,
    quota: Quota | None = None,
    handles_signals: bool = True,
    stop: asyncio.Event | None = None,
    on_started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until a signal ends it, or `stop` is set.

    `announce` is called with lines for people: what is used, and the address. `on_started` is called with the address
    of the WebSocket once connections are accepted. `quota` replaces the default limits. With `needs_voice`, a missing
    voice is an error; otherwise the server continues in text, and announces why.
    """
    host, port = host or settings.server.host, settings.server.port if port is None else port
    _check_origins(settings.server.origins)
    async with AsyncExitStack() as stack:
        # First, since the gate and the sessions look for a tracer when they are made.
        await stack.enter_async_context(tracing(os.environ, __version__, announce))
        app = await stack.enter_async_context(open_app(settings))
        texts = await open_text_models(app, stack)
        app.services.images.use_text_model(texts.best.model)
        required = await _requires_token(app, host, insecure)
        sockets = listen(host, port)
        for each in sockets:
            stack.callback(each.close)
        bound = int(sockets[0].getsockname()[1])
        voices = None
        if voice_model is None:
            voices = await open_voice_models(app, texts, stack, announce=announce, is_needed=needs_voice)
        summarizer = await stack.enter_async_context(open_summarizer(settings, texts.best.model))
        hub = app.hub(*_find_models(texts, voices, voice_model), summarizer)
        stores = app.database
        scheduler = Scheduler(app.services.reminders, Listeners(hub, stores.reminders, SystemClock()))
        stack.push_async_callback(scheduler.aclose)
        quota, lag = quota or Quota(), LagMonitor()
        authenticator = Authenticator(stores.tokens, stores.blocks, SystemClock(), required=required, quota=quota)
        addresses = machine_addresses(sockets)
        own = own_origins(host, bound, machine_names(), addresses)
        refused: RefusalCounts = Counter()
        deps = _make_deps(
            app,
            hub=hub,
            authenticator=authenticator,
            refused=refused,
            texts=texts,
            voices=voices,
            quota=quota,
            lag=lag,
        )
        gateway = GatewayDeps(
            hub=hub,
            admission=Admission(authenticator, quota, SystemClock()),
            quota=quota,
            clock=SystemClock(),
            adapters=ADAPTERS,
            voices=lambda: tuple(each.id for each in deps.voices()),
            model_name=texts.best.reference.public_name,
        )
        http_gateway = _make_http_gateway(app, gateway, deps, texts, voices)
        mcp = McpEndpoint(gateway, app.executor, stopping=deps.stopping, must_end=deps.must_end)
        await stack.enter_async_context(mcp.running())
        asgi = make_app(
            hub,
            authenticator,
            [*routes(deps), *gateway_routes(gateway), *http_gateway.routes(), *mcp.routes()],
            origins={*own, *settings.server.origins},
            quota=quota,
            body_limits={transcription.PATH: transcription.MAX_BODY_BYTES},
            refusals=refused,
        )

        def started() -> None:
            # These objects stay forever. Without this, each full garbage collection would stop all callers for 0.1 s.
            gc.collect()
            gc.freeze()
            sys.setswitchinterval(SWITCH_S)
            lines = _describe(
                app,
                host=host,
                port=bound,
                addresses=addresses,
                texts=texts,
                voices=voices,
                required=required,
            )
            for line in lines:
                announce(line)
            on_started(f"ws://{own_authority(host, bound)}/ws")
            for each in texts.opened:
                warmer = Warmer(each.model, each.factory.health, app.composer, app.registry)
                tasks.append(asyncio.create_task(warmer.run()))
            tasks.append(asyncio.create_task(keep_learning(texts.assistant, app.registry)))
            scheduler.start()
            # In a thread and after the start, which does not need it.
            tasks.append(asyncio.create_task(asyncio.to_thread(dates.warm)))
            tasks.append(asyncio.create_task(app.services.knowledge.warm()))
            tasks.append(asyncio.create_task(asyncio.to_thread(app.registry.snapshot().warm)))

        async def drain() -> None:
            deps.stopping.set()
            # What is due from now on is left to the next process, whose clients it will find connected.
            await scheduler.aclose()
            try:
                time_left_s = DRAIN_S - 1
                await asyncio.gather(
                    hub.drain(time_left_s, RESTARTING), http_gateway.drain(time_left_s), mcp.drain(time_left_s)
                )
            finally:
                deps.must_end.set()

        server = Server(
            asgi,
            host=host,
            port=bound,
            on_drain=drain,
            on_started=started,
            proxies=settings.server.proxies,
            handles_signals=handles_signals,
            lag=lag,
        )
        running = [_clean_up(app), end_revoked(hub, stores.tokens), _stop_when(stop, server)]
        if not app.registry.locked:
            running.append(watch_tools(settings, app.executor))
        tasks = [asyncio.create_task(each) for each in running]
        try:
            await server.serve(sockets)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _check_origins(origins: Sequence[str]) -> None:
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
    models = _list_models(Mode.TEXT, texts.factories)
    if voices is not None:
        models += _list_models(Mode.VOICE, voices.factories)
    return HttpDeps(
        hub=hub,
        conversations=stores.conversations,
        voice_calls=stores.voice_calls,
        knowledge=app.services.knowledge,
        registry=app.registry,
        identify=identify,
        ready=Readiness(stores.check, stopping).find_problems,
        clock=SystemClock(),
        quota=quota,
        models=lambda: models,
        voices=lambda: voices.best.voices if voices else (),
        images=app.services.images.files,
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


def _list_models(mode: Mode, factories: Mapping[int, ModelFactory]) -> list[Model]:
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


async def _stop_when(stop: asyncio.Event | None, server: Server) -> None:
    if stop is not None:
        await stop.wait()
        server.should_exit = True


async def _clean_up(app: App) -> None:
    """Periodically ends sessions that cannot be resumed, and deletes data older than `storage.retention_days`.

    The records of tool calls are deleted without that setting, too, once no session can need them.
    """
    clock, stores = SystemClock(), app.database
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
            await app.services.reminders.sweep()
            deleted = await stores.calls.delete_before(now_ms - calls_ms)
            if days:
                before_ms = now_ms - days * DAY_MS
                deleted += await stores.conversations.delete_before(before_ms)
                deleted += await stores.voice_calls.delete_before(before_ms)
                deleted += await stores.audit.delete_before(before_ms)
                deleted += await app.services.images.files.delete_before(before_ms)
            if ended or deleted:
                log.info("cleanup_done", sessions_ended=ended, records_deleted=deleted)
        except (StorageError, OSError) as error:
            log.error("cleanup_failed", error=str(error))
        await asyncio.sleep(CLEANUP_INTERVAL_S)


async def _requires_token(app: App, host: str, insecure: bool) -> bool:
    auth = app.settings.server.auth
    if insecure or auth == "off":
        if not is_loopback(host) and not insecure:
            raise InsecureError(
                f'server.auth is "off" and {host} can be reached from other machines. '
                "Use --insecure if this is intended, or leave auth at its default."
            )
        return False
    required = auth == "required" or not is_loopback(host)
    if required and not await app.database.tokens.list():
        raise InsecureError(
            f"{host} requires tokens, and there are none yet. Create one with `antiphon token new`, "
            "or listen on 127.0.0.1 only."
        )
    return required


@asynccontextmanager
async def serving(
    settings: Settings, *, voice: bool = False, announce: Callable[[str], None] = lambda line: None
) -> AsyncIterator[str]:
    """Runs a server inside this program for the duration of the block, and gives the address of its WebSocket.

    The server is for text, unless `voice` is set. Then it has a voice, or an `AntiphonError` says why not.
    """
    if not voice:
        settings = replace(settings, model=settings.model.model_copy(update={"voice": "none"}))
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    running = asyncio.create_task(
        run_server(
            settings,
            host="127.0.0.1",
            port=0,
            announce=announce,
            needs_voice=voice,
            handles_signals=False,
            stop=stop,
            on_started=address.set_result,
        )
    )
    try:
        first: list[asyncio.Future[Any]] = [running, address]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield address.result()
    finally:
        stop.set()
        if address.done():
            await running
        else:
            # It has failed, or it is no longer wanted: do not wait for what it is loading.
            running.cancel()
            await asyncio.wait([running])


def _describe(
    app: App,
    *,
    host: str,
    port: int,
    addresses: Sequence[str],
    texts: TextModels,
    voices: VoiceModels | None,
    required: bool,
) -> Iterator[str]:
    snapshot = app.registry.snapshot()
    here = own_authority(host, port)
    yield f"Antiphon listens on http://{here} (WebSocket: ws://{here}/ws)."
    outside = [own_authority(each, port) for each in addresses if not is_loopback(each)]
    if is_wildcard(host) and outside:
        yield f"From other machines: {', '.join(f'http://{each}' for each in outside)}."
    kept = app.settings.database_path or "memory only"
    yield f"Model: {texts.best.model.profile.name}. Tools: {len(snapshot.tools)} (v{snapshot.version}). Data: {kept}."
    if voices is not None:
        voice = voices.best
        if voice.speech is None:
            yield f"Voice: {voice.factory.profile.name} listens and speaks."
        else:
            speaker = voice.synthesizer.name if voice.synthesizer else "nothing"
            yield f"Voice: {voice.speech.recognizer.name} listens, {speaker} speaks."
    fallbacks = [(Mode.TEXT, texts.factories)]
    if voices is not None:
        fallbacks.append((Mode.VOICE, voices.factories))
    lines = [(mode, [each.name for each in _list_models(mode, factories)[1:]]) for mode, factories in fallbacks]
    if any(names for _, names in lines):
        told = "; ".join(f"{', then '.join(names)} for {mode}" for mode, names in lines if names)
        yield f"After a rate limit: {told}."
    for tool in snapshot.tools.values():
        unset = missing_secrets(tool.spec.secrets, os.environ)
        if unset:
            yield f"{tool.id} cannot work, since the environment has no {' and no '.join(unset)}."
    if not app.registry.locked:
        folders = ", ".join(str(path) for path in app.settings.tool_paths)
        yield f"Development: tools that change in {folders} are built and loaded again."
    if required:
        yield "Clients need a token."
    else:
        yield f"Anyone {'on this machine' if is_loopback(host) else 'who can reach it'} may talk to it."
    yield f"Try it: open http://{here}, or run antiphon chat --url http://{here}{' --token TOKEN' if required else ''}"
