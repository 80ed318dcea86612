"""The application without its voice: settings, tools, stores, text model and sessions."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Final
from uuid import uuid4

import tzlocal

from antiphon import toolkit
from antiphon.authoring import build
from antiphon.authoring.problems import BuildError
from antiphon.clock import SystemClock
from antiphon.compose.comparing import ToolComparer
from antiphon.compose.embedding import open_ranker
from antiphon.compose.services import Database, Services, open_services
from antiphon.compose.summaries import make_planner
from antiphon.config import Settings
from antiphon.continuity.energy import Ladder
from antiphon.continuity.summarizer import ModelSummarizer
from antiphon.models.base import TextModel
from antiphon.models.bounded import BoundedModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.builtin.learning import Learner
from antiphon.models.health import ModelHealth
from antiphon.models.live import ModelFactory
from antiphon.models.local_first import LocalFirstModel
from antiphon.models.providers import open_text_model
from antiphon.models.providers.references import ModelReference, Provider
from antiphon.models.shared_prefix import SharedPrefixModel
from antiphon.models.shortlist import ShortlistModel
from antiphon.models.text_live import text_factory
from antiphon.models.written_calls.model import WrittenCallsModel
from antiphon.prompts.composer import Composer
from antiphon.security.tokens import hash_token, make_handle
from antiphon.server.authenticator import LOCAL_USER
from antiphon.server.deps import OperatorDeps
from antiphon.services.mcp.servers import open_mcp
from antiphon.session.call_summaries import CallSummaries
from antiphon.session.event_log import EventLog
from antiphon.session.hooks import HookQueue
from antiphon.session.hub import Handles, Hub
from antiphon.session.models import Ladders, SharedModels
from antiphon.session.speaking import Synthesize
from antiphon.session.stored_session import Stores
from antiphon.storage import sql
from antiphon.storage.base import AuditLine
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.context import Messaging
from antiphon.tools.errors import RegistryError
from antiphon.tools.executor import Executor
from antiphon.tools.registry import Registry
from antiphon.tools.session import NoClient, ToolSession
from antiphon.tools.spec import Mode

HOUR_MS: Final = 60 * 60 * 1000
TOOLKIT: Final = Path(toolkit.__path__[0]).resolve()


@dataclass(frozen=True, slots=True)
class App:
    """A running Antiphon without a server."""

    settings: Settings
    registry: Registry
    executor: Executor
    database: Database
    model_health: ModelHealth
    composer: Composer
    services: Services

    def session(self, *, mode: Mode = Mode.TEXT, messaging: Messaging | None = None) -> ToolSession:
        """Makes a new session of the local user."""
        session = ToolSession(
            id=uuid4().hex,
            user=LOCAL_USER,
            snapshot=self.registry.snapshot(),
            mode=mode,
            zone=tzlocal.get_localzone(),
            messaging=messaging or NoClient(),
        )
        session.state.voice_active = mode is Mode.VOICE
        return session

    async def assistant(self) -> BuiltinModel:
        """Makes the offline assistant, ready to answer. What requests mean it learns in the background."""
        cache = self.settings.data_dir / "cache" if self.settings.keeps_data else None
        builtin = BuiltinModel(
            self.registry,
            self.services.knowledge.has_records,
            name=self.settings.assistant.name,
            learner=Learner(self.services.embedder.find, cache),
        )
        # In a thread, since compiling the grammar takes 0.2 s.
        await asyncio.to_thread(builtin.compile)
        return builtin

    @asynccontextmanager
    async def text_model(self, reference: ModelReference, assistant: BuiltinModel) -> AsyncIterator[TextModel]:
        """Opens a text model, with the offline assistant in front of it unless the settings say otherwise."""
        if reference.provider is Provider.BUILTIN:
            yield assistant
            return
        async with AsyncExitStack() as stack:
            model = open_text_model(reference, os.environ, self.settings.ollama)
            stack.push_async_callback(model.aclose)
            wrapped: TextModel = SharedPrefixModel(WrittenCallsModel(BoundedModel(model)))
            tools_per_turn = self.settings.model.tools_per_turn
            if tools_per_turn:
                ranker = await stack.enter_async_context(open_ranker(self.settings))
                wrapped = ShortlistModel(wrapped, ranker, tools_per_turn, assistant.describe_tools)
            if self.settings.model.local_first:
                wrapped = LocalFirstModel(assistant, wrapped)
            yield wrapped

    def ladders(self, model: TextModel, voice: ModelFactory | None = None) -> Ladders:
        """Makes ladders that have the same model at all levels. Without a voice, calls are refused with a notice."""
        factories = {Mode.TEXT: text_factory(model, self.model_health)}
        if voice is not None:
            factories[Mode.VOICE] = voice
        return {mode: Ladder.of_one(mode, factory, SystemClock().monotonic) for mode, factory in factories.items()}

    def operator(self) -> OperatorDeps:
        """Returns what the operator's page works with."""
        stores = self.database
        return OperatorDeps(
            overview=stores.overview,
            events=stores.events,
            audit=stores.audit,
            tokens=stores.tokens,
            blocks=stores.blocks,
            compare_tools=ToolComparer(self.registry, lambda: build_tools(self.settings)).compare,
        )

    def hub(
        self,
        ladders: Ladders,
        synthesize: Synthesize | None = None,
        summarizer: ModelSummarizer | None = None,
        hooks: HookQueue | None = None,
    ) -> Hub:
        """Makes the hub of this process's sessions. Without a summarizer, summaries are extractive."""
        stores = self.database
        return Hub(
            executor=self.executor,
            stores=Stores(
                stores.conversations,
                stores.sessions,
                stores.messages,
                stores.blocks,
                stores.voice_calls,
                stores.changes,
            ),
            models=SharedModels(
                ladders,
                make_planner(summarizer, self.settings.continuity.summarize),
                names_of=self.services.names_of,
            ),
            synthesize=synthesize,
            summaries=None if summarizer is None else CallSummaries(stores.voice_calls, summarizer),
            events=EventLog(stores.events, stores.clock),
            recordings=self.services.recordings,
            composer=self.composer,
            handles=Handles(make_handle, hash_token, self.settings.continuity.resume_hours * HOUR_MS),
            clock=stores.clock,
            owner=f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}",
            zone=tzlocal.get_localzone(),
            hooks=hooks or HookQueue(),
        )


def build_tools(settings: Settings) -> build.Built:
    """Compiles the built-in tools and the project's own tools, without writing anything."""
    return build.build([TOOLKIT, *settings.tool_paths], disable=settings.tools.disable, shipped=TOOLKIT)


def load_tools(settings: Settings) -> Registry:
    """Loads the registry. It is built first unless `tools.build` is off; then a stale artifact is an error."""
    if settings.tools.build:
        built = build_tools(settings)
        if not built.ok:
            count = "a mistake" if len(built.errors) == 1 else f"{len(built.errors)} mistakes, the first"
            raise BuildError(f"the tools have {count}: {built.errors[0]}. Run `antiphon tools build` to see them all.")
        build.write(built, settings.artifact_path)
    elif not settings.artifact_path.exists():
        raise RegistryError(f"{settings.artifact_path} is missing. Run `antiphon tools build` first.")
    registry = Registry.load(settings.artifact_path, environment=settings.server.environment)
    if settings.server.environment == "production":
        registry.lock()
    return registry


async def open_stores(settings: Settings) -> Database:
    place = settings.database
    return MemoryDatabase() if place is None else await sql.open_database(place)


@asynccontextmanager
async def open_app(
    settings: Settings, watch_calls: Callable[[AuditLine], None] = lambda line: None
) -> AsyncIterator[App]:
    """Opens the application. `watch_calls` is called with each line of the audit."""
    composer = Composer(settings.assistant)
    registry = load_tools(settings)
    database = await open_stores(settings)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.aclose)
        services = await stack.enter_async_context(open_services(settings, database))
        opening = open_mcp(settings.mcp_servers, registry, database.mcp_pins, clock=database.clock, rng=SystemRandom())
        services.mcp = await stack.enter_async_context(opening)
        executor = Executor(
            registry,
            calls=database.calls,
            confirmations=database.confirmations,
            audit=database.audit,
            limits=database.limits,
            clock=database.clock,
            environment=settings.server.environment,
            keep_arguments=settings.audit.arguments,
            offers=services.offers,
            watch_calls=watch_calls,
        )
        stack.push_async_callback(executor.aclose)
        yield App(settings, registry, executor, database, ModelHealth(), composer, services)
