"""The server as a whole: stores, tools, model, sessions and sockets, from the first to the last."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request

from antiphon.clock import SystemClock
from antiphon.compose import House, Voice, open_house, open_voice
from antiphon.config import Settings
from antiphon.errors import AntiphonError
from antiphon.models.base import TextModel, TextProfile
from antiphon.models.builtin import BuiltinModel
from antiphon.models.live import LiveModel
from antiphon.models.providers.references import parse
from antiphon.security.origin import explain_origin, is_loopback, is_wildcard, own_authority, own_origins
from antiphon.security.quota import Quota
from antiphon.security.tokens import bearer
from antiphon.server.app import make_app
from antiphon.server.authenticator import Authenticator, Caller, end_revoked
from antiphon.server.deps import HttpDeps, Model, ModelFailure, ModelState
from antiphon.server.health import LagCollector, LagMonitor, Readiness
from antiphon.server.http import routes
from antiphon.server.serving import DRAIN_S, Server, listen, machine_addresses, machine_names
from antiphon.session.hub import Hub
from antiphon.speech.base import SpeechUnreachable
from antiphon.storage.base import StorageError
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode
from antiphon.words import dates

RESTARTING: Final = "The server restarts."
SWITCH_S: Final = 0.001
"""How long a thread waits for another that is at work in Python. By Python's usual 5 ms, each hop to a model or to the
database costs a busy server that much."""
HOUSEKEEPING_S: Final = 3_600.0
VOICE_WAITS_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
"""After a power cut, an engine on another machine may start later than this: it is tried again."""
DAY_MS: Final = 24 * 60 * 60 * 1000

log = get_logger(__name__)


class InsecureError(AntiphonError):
    """The server would be open to strangers."""

    code = "insecure"


class OriginError(AntiphonError):
    """An entry of `server.origins` is not an origin."""

    code = "origin"


class VoicelessError(AntiphonError):
    """A voice is needed where the settings have none."""

    code = "voiceless"


async def run_server(
    settings: Settings,
    *,
    host: str | None = None,
    port: int | None = None,
    insecure: bool = False,
    announce: Callable[[str], None] = lambda line: None,
    make_voice: Callable[[], LiveModel] | None = None,
    needs_voice: bool = False,
    quota: Quota | None = None,
    handles_signals: bool = True,
    stop: asyncio.Event | None = None,
    on_started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until a signal ends it, or `stop` is set.

    `announce` is told in plain words what is used, and where to go. `on_started` is given the address of the WebSocket
    once connections are accepted. `quota` takes the place of the usual limits. With
    `needs_voice` a voice that cannot be had is an error; else the server goes on in text, and says why.
    """
    host, port = host or settings.server.host, settings.server.port if port is None else port
    _check_origins(settings.server.origins)
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(open_house(settings))
        model = await stack.enter_async_context(house.text_model())
        required = await _asks_for_tokens(house, host, insecure)
        sockets = listen(host, port)
        bound = int(sockets[0].getsockname()[1])
        voice = None
        if make_voice is None:
            voice = await _find_voice(house, model, stack, announce=announce, is_needed=needs_voice)
        if voice is not None:
            hub = house.hub(model, voice.make_model, voice.make_sample if voice.speech.synthesizer else None)
        else:
            hub = house.hub(model, make_voice)
        stores = house.database
        quota, lag = quota or Quota(), LagMonitor()
        authenticator = Authenticator(stores.tokens, stores.blocks, SystemClock(), required=required, quota=quota)
        addresses = machine_addresses(sockets)
        own = own_origins(host, bound, machine_names(), addresses)
        deps = _make_deps(
            house,
            hub=hub,
            authenticator=authenticator,
            profile=model.profile,
            voice=voice,
            quota=quota,
            lag=lag,
        )
        app = make_app(hub, authenticator, routes(deps), origins={*own, *settings.server.origins}, quota=quota)

        def started() -> None:
            # What is there now stays: left to the collector, each of its full rounds would stop all callers for 0.1 s.
            gc.collect()
            gc.freeze()
            sys.setswitchinterval(SWITCH_S)
            lines = _describe(
                house,
                host=host,
                port=bound,
                addresses=addresses,
                model=model.profile.name,
                voice=voice,
                required=required,
            )
            for line in lines:
                announce(line)
            on_started(f"ws://{own_authority(host, bound)}/ws")
            # Beside the event loop, and after the start, which does not need it.
            tasks.append(asyncio.create_task(asyncio.to_thread(dates.warm)))

        async def drain() -> None:
            deps.stopping.set()
            try:
                await hub.drain(DRAIN_S - 1, RESTARTING)
            finally:
                deps.must_end.set()

        server = Server(
            app,
            host=host,
            port=bound,
            on_drain=drain,
            on_started=started,
            proxies=settings.server.proxies,
            handles_signals=handles_signals,
            lag=lag,
        )
        running = (_keep_house(house), end_revoked(hub, stores.tokens), _stop_when(stop, server))
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


async def _find_voice(
    house: House, model: TextModel, stack: AsyncExitStack, *, announce: Callable[[str], None], is_needed: bool
) -> Voice | None:
    """The voice of the settings. If it cannot be had, that is announced, or raised if it is needed."""
    if house.settings.model.voice == "none":
        if is_needed:
            raise VoicelessError('there is no voice, since model.voice is "none" in the settings.')
        return None
    announce("Loading the voice…")
    assistant = model if isinstance(model, BuiltinModel) else await house.assistant()
    for wait_s in (*VOICE_WAITS_S, None):
        try:
            return await stack.enter_async_context(
                open_voice(
                    house.settings,
                    model,
                    lambda text: assistant.completeness(text, Mode.VOICE),
                    house.model_health,
                )
            )
        except AntiphonError as error:
            if is_needed:
                raise
            if wait_s is None or not isinstance(error, SpeechUnreachable):
                announce(f"There is no voice, only text: {error}")
                break
            announce(f"{error} Trying again in {wait_s:g} s.")
            await asyncio.sleep(wait_s)
    return None


def _make_deps(
    house: House,
    *,
    hub: Hub,
    authenticator: Authenticator,
    profile: TextProfile,
    voice: Voice | None,
    quota: Quota,
    lag: LagMonitor,
) -> HttpDeps:
    stores, stopping = house.database, asyncio.Event()

    async def identify(request: Request) -> Caller | None:
        address = request.client.host if request.client is not None else None
        token = bearer(request.headers.get("authorization"))
        return await authenticator.identify(token, address=address, route=request.url.path)

    def model_state() -> ModelState:
        failure = house.model_health.last_failure
        told = None if failure is None else ModelFailure(failure.kind, failure.at_ms, failure.status)
        return ModelState(parse(house.settings.model.text).public_name, told)

    models = [Model(profile.name, Mode.TEXT, profile.needs_network, current=True)]
    if voice is not None:
        speaker = voice.make_model().profile
        models.append(Model(speaker.name, Mode.VOICE, speaker.needs_network, current=True))
    synthesizer = voice.speech.synthesizer if voice else None
    return HttpDeps(
        hub=hub,
        conversations=stores.conversations,
        voice_calls=stores.voice_calls,
        registry=house.registry,
        identify=identify,
        ready=Readiness(stores.check, stopping).find_problems,
        clock=SystemClock(),
        quota=quota,
        models=lambda: models,
        voices=lambda: synthesizer.voices if synthesizer else (),
        collectors=[LagCollector(lag.stats)],
        stopping=stopping,
        model_state=model_state,
    )


async def _stop_when(stop: asyncio.Event | None, server: Server) -> None:
    if stop is not None:
        await stop.wait()
        server.should_exit = True


async def _keep_house(house: House) -> None:
    """Ends what nobody can come back to, and forgets what is older than `storage.retention_days`."""
    clock, stores = SystemClock(), house.database
    days = house.settings.storage.retention_days
    while True:
        now_ms = clock.now_ms()
        try:
            ended = await stores.sessions.sweep(now_ms)
            await stores.confirmations.sweep(now_ms)
            forgotten = 0
            if days:
                before_ms = now_ms - days * DAY_MS
                forgotten = await stores.conversations.delete_before(before_ms)
                forgotten += await stores.voice_calls.delete_before(before_ms)
                forgotten += await stores.calls.delete_before(before_ms)
                forgotten += await stores.audit.delete_before(before_ms)
            if ended or forgotten:
                log.info("house_kept", sessions_ended=ended, forgotten=forgotten)
        except StorageError as error:
            log.error("house_not_kept", error=str(error))
        await asyncio.sleep(HOUSEKEEPING_S)


async def _asks_for_tokens(house: House, host: str, insecure: bool) -> bool:
    auth = house.settings.server.auth
    if insecure or auth == "off":
        if not is_loopback(host) and not insecure:
            raise InsecureError(
                f'server.auth is "off" and {host} can be reached from other machines. '
                "Use --insecure if that is meant, or leave auth at its default."
            )
        return False
    required = auth == "required" or not is_loopback(host)
    if required and not await house.database.tokens.list():
        raise InsecureError(
            f"{host} asks for tokens, and there are none yet. Make one with `antiphon token new`, "
            "or listen on 127.0.0.1 only."
        )
    return required


@asynccontextmanager
async def serving(
    settings: Settings, *, voice: bool = False, announce: Callable[[str], None] = lambda line: None
) -> AsyncIterator[str]:
    """A server of this program's own, as long as the block lasts: gives the address of its socket.

    It is for text, unless a voice is wanted. Then it has one, or an `AntiphonError` says why it cannot be had.
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
            # It has failed, or nobody wants it any more: what it is loading is not waited for.
            running.cancel()
            await asyncio.wait([running])


def _describe(
    house: House,
    *,
    host: str,
    port: int,
    addresses: Sequence[str],
    model: str,
    voice: Voice | None,
    required: bool,
) -> Iterator[str]:
    snapshot = house.registry.snapshot()
    here = own_authority(host, port)
    yield f"Antiphon listens on http://{here} (WebSocket: ws://{here}/ws)."
    outside = [own_authority(each, port) for each in addresses if not is_loopback(each)]
    if is_wildcard(host) and outside:
        yield f"From other machines: {', '.join(f'http://{each}' for each in outside)}."
    kept = house.settings.database_path or "memory only"
    yield f"Model: {model}. Tools: {len(snapshot.tools)} (v{snapshot.version}). Data: {kept}."
    if voice is not None:
        mouth = voice.speech.synthesizer.name if voice.speech.synthesizer else "nothing"
        yield f"Voice: {voice.speech.recognizer.name} listens, {mouth} speaks."
    if required:
        yield "Clients must show a token."
    else:
        yield f"Anybody {'on this machine' if is_loopback(host) else 'who can reach it'} may talk to it."
    yield f"Try it: open http://{here}, or run antiphon chat --url http://{here}{' --token TOKEN' if required else ''}"
