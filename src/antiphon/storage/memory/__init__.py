"""Stores that live as long as the process: for tests, for trying things out, and for measuring the gate alone.

No method awaits anything, so each is one step to every other task of the loop.
"""

from antiphon.clock import Clock, SystemClock
from antiphon.storage.changes import LocalChanges
from antiphon.storage.memory.calendar import MemoryCalendarStore
from antiphon.storage.memory.commands import MemoryCommandStore
from antiphon.storage.memory.conversations import MemoryConversationStore, MemoryVoiceCallStore
from antiphon.storage.memory.images import MemoryImageStore
from antiphon.storage.memory.knowledge import open_knowledge
from antiphon.storage.memory.limits import MemoryLimitStore
from antiphon.storage.memory.lists import MemoryListStore, MemoryToolValueStore
from antiphon.storage.memory.mcp_pins import MemoryMcpPinStore
from antiphon.storage.memory.overview import MemoryEventStore, MemoryOverviewStore
from antiphon.storage.memory.people import MemoryBlockStore, MemoryTokenStore
from antiphon.storage.memory.recordings import MemoryRecordingStore
from antiphon.storage.memory.reminders import MemoryReminderStore
from antiphon.storage.memory.sessions import MemoryMessageStore, MemorySessionStore
from antiphon.storage.memory.tool_calls import MemoryAuditStore, MemoryCallStore, MemoryConfirmationStore
from antiphon.telemetry.metrics import StoreStats

__all__ = ["MemoryAuditStore", "MemoryBlockStore", "MemoryCallStore", "MemoryConfirmationStore", "MemoryDatabase"]


class MemoryDatabase:
    """All the stores together, as `sql.Database` has them."""

    def __init__(self) -> None:
        self.stats = StoreStats()
        """Nothing is counted: no method takes long enough."""
        self.calls = MemoryCallStore()
        self.confirmations = MemoryConfirmationStore()
        self.audit = MemoryAuditStore()
        self.sessions = MemorySessionStore()
        self.messages = MemoryMessageStore(self.sessions)
        self.conversations = MemoryConversationStore(self.sessions)
        self.voice_calls = MemoryVoiceCallStore(self.sessions)
        self.blocks = MemoryBlockStore()
        self.tokens = MemoryTokenStore()
        self.knowledge = open_knowledge()
        self.lists = MemoryListStore()
        self.tool_values = MemoryToolValueStore()
        self.reminders = MemoryReminderStore(self.sessions)
        self.calendar = MemoryCalendarStore()
        self.mcp_pins = MemoryMcpPinStore()
        self.commands = MemoryCommandStore()
        self.limits = MemoryLimitStore()
        self.changes = LocalChanges()
        self.events = MemoryEventStore(self.conversations)
        self.overview = MemoryOverviewStore(
            sessions=self.sessions,
            conversations=self.conversations,
            voice_calls=self.voice_calls,
            audit=self.audit,
            knowledge=self.knowledge,
        )
        self.recordings = MemoryRecordingStore(self.conversations)
        self.images = MemoryImageStore()
        self.clock: Clock = SystemClock()

    async def check(self) -> None:
        """Does nothing: a store in memory cannot fail."""

    async def aclose(self) -> None:
        await self.knowledge.aclose()
