"""Antiphon as an ASGI application: alone in a server such as uvicorn, or mounted in an application of one's own.

    uvicorn antiphon.asgi:app
    uvicorn --factory antiphon.asgi:create_app

Nothing is set for the whole process: signals, the garbage collector, the event loop and Python's logging stay as they
are.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.compose.app import App
from antiphon.compose.server import Access, ComposedServer, InsecureError, check_origins, compose_server
from antiphon.config import Settings, load, load_tables
from antiphon.errors import AntiphonError
from antiphon.security.origin import LOOPBACK
from antiphon.security.paths import local_path
from antiphon.server.refusals import RefusalLog, unavailable
from antiphon.server.serving import DRAIN_S, list_addresses, machine_names
from antiphon.session.hooks import HookError, Hooks, SessionEnded, SessionStarted, ToolCalled, TurnEnded
from antiphon.telemetry.log import get_logger, logging_forwarded

__all__ = [
    "AntiphonApp",
    "HookError",
    "Hooks",
    "NotStarted",
    "SessionEnded",
    "SessionStarted",
    "ToolCalled",
    "TurnEnded",
    "create_app",
]

NOT_STARTED: Final = (
    "Antiphon was not started. An application that mounts it must enter `async with antiphon_app.running()` in its "
    "lifespan."
)

log = get_logger(__name__)


class NotStarted(AntiphonError):
    """The application is not running, or is running already."""

    code = "not_started"


class AntiphonApp:
    """An ASGI application. Made by `create_app`.

    A server that runs it alone starts it by the lifespan protocol. Starlette and FastAPI do not start the applications
    that they mount, so their own lifespan must enter `running()`. Until then, requests are answered with 503.
    """

    def __init__(self, settings: Settings, hooks: Hooks | None = None) -> None:
        self.settings = settings
        self._hooks = hooks
        self._composed: ComposedServer | None = None
        self._is_running = False
        self._refusals = RefusalLog()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Opens stores, tools and models, and serves until the end of the block. Raises `AntiphonError` if something
        is wrong with the settings, or if it is already running."""
        if self._is_running:
            raise NotStarted("Antiphon is already running. Enter `running()` once, or make another application.")
        self._is_running = True
        try:
            with logging_forwarded():
                async with (
                    compose_server(
                        self.settings, _decide_access, announce=_announce, hooks=self._hooks
                    ) as self._composed,
                    _serving(self._composed),
                ):
                    yield
        finally:
            self._composed = None
            self._is_running = False

    @asynccontextmanager
    async def lifespan(self, app: ASGIApp) -> AsyncIterator[None]:
        """Does the same as `running`, as the `lifespan` of a Starlette or FastAPI application that has no other."""
        async with self.running():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._composed is not None:
            await self._composed.asgi(scope, receive, send)
        else:
            await self._refuse(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        has_started = False
        try:
            async with self.running():
                await send({"type": "lifespan.startup.complete"})
                has_started = True
                await receive()
        except AntiphonError as error:
            stage = "shutdown" if has_started else "startup"
            await send({"type": f"lifespan.{stage}.failed", "message": f"Antiphon: {error}"})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        self._refusals.write(NOT_STARTED, address=client[0] if client else None, route=local_path(scope), status=503)
        if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close"})
            return
        await unavailable(NOT_STARTED).response()(scope, receive, send)


@asynccontextmanager
async def _serving(composed: ComposedServer) -> AsyncIterator[None]:
    lag = asyncio.create_task(composed.lag.run())
    composed.start()
    try:
        yield
    finally:
        try:
            await composed.drain(DRAIN_S - 1)
        finally:
            lag.cancel()
            await asyncio.wait([lag])
            await composed.hub.aclose()


def create_app(
    settings: "Settings | Mapping[str, Any] | str | os.PathLike[str] | None" = None, *, hooks: Hooks | None = None
) -> AntiphonApp:
    """Makes the application.

    `settings` are those of `antiphon.config.load`, the tables of an `antiphon.toml` as a dict, or the path of one.
    Without them, `antiphon.toml` in the current folder is read, if there is one. The environment overrides files and
    dicts. `hooks` are called besides those that the settings name.

    Raises `ConfigError` with every mistake in the settings, and `OriginError` for a wrong entry of `server.origins`.
    """
    match settings:
        case None:
            loaded = load(None)
        case Settings():
            loaded = settings
        case Mapping():
            loaded = load_tables(settings)
        case str() | os.PathLike():
            loaded = load(Path(settings))
        case _:
            kind = type(settings).__name__
            raise TypeError(f"settings must be Settings, a dict, the path of an antiphon.toml or None, not {kind}.")
    if hooks is not None and not isinstance(hooks, Hooks):
        raise TypeError(f"hooks must be Hooks(turn_ended=…), not {type(hooks).__name__}.")
    check_origins(loaded.server.origins)
    return AntiphonApp(loaded, hooks)


async def _decide_access(app: App) -> Access:
    """Inside another server it is not known who can reach it, so tokens are required unless the settings say
    otherwise."""
    required = app.settings.server.auth != "off"
    if required and not await app.database.tokens.list():
        raise InsecureError(
            "Inside another server, callers need a token, and there are none yet. Create one with "
            '`antiphon token new`, or set server.auth = "off" if only people whom you trust can reach it.'
        )
    return Access(required, (), [*LOOPBACK, *machine_names(), *list_addresses()], same_origin=True)


def _announce(line: str) -> None:
    log.info("started", note=line)


def __getattr__(name: str) -> object:
    """Makes `app`, with the settings of the current folder, when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = made = create_app()
    return made
