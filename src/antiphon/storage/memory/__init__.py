"""Stores that live as long as the process: for tests, for trying things out, and for the cost of the gate alone.

No method awaits anything, so each is one step to every other task of the loop.
"""

from antiphon.storage.memory.audit import MemoryAuditStore
from antiphon.storage.memory.calls import MemoryCallStore
from antiphon.storage.memory.confirmations import MemoryConfirmationStore
from antiphon.storage.memory.conversations import MemoryConversationStore, MemoryVoiceCallStore
from antiphon.storage.memory.database import MemoryDatabase
from antiphon.storage.memory.people import MemoryBlockStore, MemoryTokenStore
from antiphon.storage.memory.sessions import MemoryMessageStore, MemorySessionStore

__all__ = [
    "MemoryAuditStore",
    "MemoryBlockStore",
    "MemoryCallStore",
    "MemoryConfirmationStore",
    "MemoryConversationStore",
    "MemoryDatabase",
    "MemoryMessageStore",
    "MemorySessionStore",
    "MemoryTokenStore",
    "MemoryVoiceCallStore",
]
