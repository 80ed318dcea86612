"""All the stores of a process."""

from antiphon.storage.memory.audit import MemoryAuditStore
from antiphon.storage.memory.calls import MemoryCallStore
from antiphon.storage.memory.confirmations import MemoryConfirmationStore
from antiphon.storage.memory.conversations import MemoryConversationStore, MemoryVoiceCallStore
from antiphon.storage.memory.people import MemoryBlockStore, MemoryTokenStore
from antiphon.storage.memory.sessions import MemoryMessageStore, MemorySessionStore


class MemoryDatabase:
    """All the stores together, as `sql.Database` has them."""

    def __init__(self) -> None:
        self.calls = MemoryCallStore()
        self.confirmations = MemoryConfirmationStore()
        self.audit = MemoryAuditStore()
        self.sessions = MemorySessionStore()
        self.messages = MemoryMessageStore(self.sessions)
        self.conversations = MemoryConversationStore(self.sessions)
        self.voice_calls = MemoryVoiceCallStore(self.sessions)
        self.blocks = MemoryBlockStore()
        self.tokens = MemoryTokenStore()

    async def check(self) -> None:
        """There is nothing that could fail."""

    async def aclose(self) -> None:
        """There is nothing to close."""
