"""Opens the services that tools use, and offers them to tools by name."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from antiphon.compose.capabilities import open_capabilities
from antiphon.compose.embedding import SharedEmbedder
from antiphon.config import Settings
from antiphon.services.calendar import CalendarService, open_calendar
from antiphon.services.home import open_home
from antiphon.services.images import ImageService, open_images
from antiphon.services.kb import Knowledge, open_knowledge
from antiphon.services.lists import offer_lists
from antiphon.services.mcp.servers import McpServers
from antiphon.services.recordings import RecordingService, open_recordings
from antiphon.services.reminders import ReminderService
from antiphon.services.secrets import offer_secrets
from antiphon.services.tool_storage import offer_storage
from antiphon.services.web import open_web
from antiphon.storage import sql
from antiphon.storage.lists import ListStore
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.capabilities.home import Home
from antiphon.tools.context import Offer
from antiphon.tools.errors import ToolError
from antiphon.tools.spec import Capability

Database = MemoryDatabase | sql.Database
"""The stores of a process, in whichever backend."""


MAX_TITLES: Final = 200
MAX_NAMES: Final = 500
MAX_ITEM_WORDS: Final = 4


@dataclass(slots=True)
class Services:
    """The services of a process. Everything that a tool can use is in `offers`, by the name in its schema."""

    knowledge: Knowledge
    reminders: ReminderService
    calendar: CalendarService
    images: ImageService
    embedder: SharedEmbedder
    home: Home
    lists: ListStore
    recordings: RecordingService
    offers: dict[str, Offer] = field(default_factory=dict)
    mcp: McpServers | None = None
    """The MCP servers of the settings; None if there are none."""

    async def names_of(self, user: str) -> Sequence[str]:
        """Returns names that this user is likely to say: lists, titles of the knowledge base, and items of lists. They
        are private to the user."""
        items = sorted(await self.lists.items(user), key=lambda item: item.added_ms, reverse=True)
        records = await self.knowledge.store.list(self.knowledge.readable(user), MAX_TITLES)
        # Items that are sentences, such as notes, are not said again word by word.
        said = [item.text for item in items if len(item.text.split()) <= MAX_ITEM_WORDS]
        names = [*(item.list for item in items), *(record.title for record in records), *said]
        return list(dict.fromkeys(names))[:MAX_NAMES]

    async def names(self) -> Sequence[str]:
        """Returns names that anybody may say: those of the home's devices and rooms. None if it is away."""
        try:
            devices = await self.home.look(None, None)
        except ToolError:
            return ()
        return list(dict.fromkeys(name for device in devices for name in (device.name, device.area) if name))


@asynccontextmanager
async def open_services(settings: Settings, database: Database) -> AsyncIterator[Services]:
    clock = database.clock
    async with AsyncExitStack() as stack:
        embedder = SharedEmbedder(settings)
        stack.push_async_callback(embedder.aclose)
        knowledge = await stack.enter_async_context(open_knowledge(settings, database.knowledge, embedder.load))
        calendar = await stack.enter_async_context(
            open_calendar(settings.calendar, database.calendar, clock, os.environ)
        )
        images = await stack.enter_async_context(open_images(settings, database.images))
        home = await stack.enter_async_context(open_home(settings.home, clock))
        reminders = ReminderService(database.reminders, clock, database.changes)
        recordings = await stack.enter_async_context(open_recordings(settings, database.recordings, clock))
        services = Services(knowledge, reminders, calendar, images, embedder, home, database.lists, recordings)
        services.offers[Capability.KB] = lambda session, tool: knowledge.session(session)
        services.offers[Capability.CALENDAR] = calendar.offer
        services.offers[Capability.IMAGES] = images.offer
        services.offers[Capability.REMINDERS] = services.reminders.offer
        services.offers[Capability.LISTS] = offer_lists(database.lists, clock)
        services.offers[Capability.STORAGE] = offer_storage(database.tool_values, clock)
        services.offers[Capability.SECRETS] = offer_secrets(os.environ)
        web = await stack.enter_async_context(open_web(settings.web, settings.weather, clock))
        services.offers[Capability.HOME] = lambda session, tool: home
        services.offers[Capability.FETCH] = lambda session, tool: web.fetch
        services.offers[Capability.WEATHER] = lambda session, tool: web.weather
        services.offers[Capability.WEB] = lambda session, tool: web.web
        services.offers |= await open_capabilities(settings, stack)
        yield services
