"""The server of `antiphon serve`: its sockets, its signals, and what it sets for the whole process."""

import asyncio
import gc
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from antiphon.compose import App
from antiphon.compose.server import Access, ComposedServer, InsecureError, compose_server, list_models
from antiphon.config import Settings
from antiphon.models.live import ModelFactory
from antiphon.security.origin import is_loopback, is_wildcard, own_origins, parse_host
from antiphon.security.quota import Quota
from antiphon.server.serving import (
    DRAIN_S,
    Endpoint,
    Server,
    list_addresses,
    listen,
    machine_addresses,
    machine_names,
)
from antiphon.server.tls import (
    TlsError,
    TlsFiles,
    describe_certificate,
    follow_renewals,
    load_context,
    prepare_self_signed,
)
from antiphon.services.secrets import missing_secrets
from antiphon.tools.spec import Mode

SWITCH_S: Final = 0.001
"""How long a thread may run Python code before another one gets its turn. With Python's default of 5 ms, each hop to a
model or to the database costs a busy server that much."""


async def run_server(
    settings: Settings,
    *,
    host: str | None = None,
    port: int | None = None,
    insecure: bool = False,
    self_signed: bool = False,
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
    voice is an error; otherwise the server continues in text, and announces why. With `self_signed`, the server makes a
    certificate for itself if it has none yet.
    """
    host, port = host or settings.server.host, settings.server.port if port is None else port
    sockets: list[socket.socket] = []
    certificate: list[str] = []
    files = _find_certificate(settings, self_signed)
    tls = None if files is None else load_context(files)

    def endpoint() -> Endpoint:
        return Endpoint(host, _port_of(sockets), machine_addresses(sockets), is_tls=tls is not None)

    async def decide_access(app: App) -> Access:
        required = await _requires_token(app, host, insecure)
        sockets.extend(listen(host, port))
        for each in sockets:
            stack.callback(each.close)
        at = endpoint()
        if files is not None:
            certificate.extend(describe_certificate(files, at))
        return Access(required, own_origins(host, at.port, machine_names(), at.addresses, scheme=at.scheme))

    async with AsyncExitStack() as stack:
        composed = await stack.enter_async_context(
            compose_server(
                settings,
                decide_access,
                announce=announce,
                voice_model=voice_model,
                needs_voice=needs_voice,
                quota=quota,
            )
        )

        def started() -> None:
            # These objects stay forever. Without this, each full garbage collection would stop all callers for 0.1 s.
            gc.collect()
            gc.freeze()
            sys.setswitchinterval(SWITCH_S)
            for line in _describe(composed, endpoint(), certificate):
                announce(line)
            on_started(endpoint().socket_url)
            composed.start()

        server = Server(
            composed.asgi,
            host=host,
            port=_port_of(sockets),
            on_drain=lambda: composed.drain(DRAIN_S - 1),
            on_started=started,
            proxies=settings.server.proxies,
            tls=tls,
            handles_signals=handles_signals,
            lag=composed.lag,
        )
        tasks = [asyncio.create_task(_stop_when(stop, server))]
        if tls is not None and files is not None:
            tasks.append(asyncio.create_task(follow_renewals(tls, files)))
        try:
            await server.serve(sockets)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def _port_of(sockets: Sequence[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])


def _find_certificate(settings: Settings, self_signed: bool) -> TlsFiles | None:
    """Returns the files of the certificate; None without TLS. Makes one if the server should sign its own."""
    paths = settings.tls_paths
    if self_signed and paths is not None:
        raise TlsError("server.tls_cert is set, so --self-signed would make a second certificate. Use one of them.")
    if not self_signed:
        return None if paths is None else TlsFiles(*paths)
    # All addresses, also those that the server does not listen on now: a new certificate has to be accepted again.
    hosts = [*machine_names(), *(address for address in list_addresses() if not is_loopback(address))]
    return prepare_self_signed(settings.data_dir, [host for host in map(parse_host, hosts) if host is not None])


async def _stop_when(stop: asyncio.Event | None, server: Server) -> None:
    if stop is not None:
        await stop.wait()
        server.should_exit = True


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
    # Only this program uses it, on this machine.
    settings = replace(settings, server=settings.server.model_copy(update={"tls_cert": "", "tls_key": ""}))
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


def _describe(composed: ComposedServer, endpoint: Endpoint, certificate: Iterable[str]) -> Iterator[str]:
    """Describes the server; `certificate` has the lines about TLS."""
    app, texts, voices, required = composed.app, composed.texts, composed.voices, composed.access.required
    snapshot = app.registry.snapshot()
    yield f"Antiphon listens on {endpoint.url} (WebSocket: {endpoint.socket_url})."
    if is_wildcard(endpoint.host) and endpoint.outside_urls:
        yield f"From other machines: {', '.join(endpoint.outside_urls)}."
    yield from certificate
    kept = app.settings.database_name
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
    lines = [(mode, [each.name for each in list_models(mode, factories)[1:]]) for mode, factories in fallbacks]
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
        yield f"Anyone {'on this machine' if is_loopback(endpoint.host) else 'who can reach it'} may talk to it."
    # The chat finds the certificate of the server in the settings by itself.
    options = f"{' --token TOKEN' if required else ''}"
    yield f"Try it: open {endpoint.url}, or run antiphon chat --url {endpoint.url}{options}"
