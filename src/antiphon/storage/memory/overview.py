"""What the operator reads of the stores in memory."""

from collections.abc import Mapping, Sequence
from itertools import islice

from antiphon.storage.base import AuditLine
from antiphon.storage.conversations import Conversation, Place, StoredTurn, VoiceCall
from antiphon.storage.events import SessionEvent
from antiphon.storage.memory.conversations import MemoryConversationStore, MemoryVoiceCallStore, newest_first
from antiphon.storage.memory.knowledge import MemoryKnowledgeStore
from antiphon.storage.memory.sessions import MemorySessionStore
from antiphon.storage.memory.tool_calls import MemoryAuditStore
from antiphon.storage.overview import AuditFilter, UserActivity
from antiphon.storage.sessions import SessionRecord


class MemoryEventStore:
    def __init__(self, conversations: MemoryConversationStore) -> None:
        self._conversations = conversations

    async def append(self, events: Sequence[SessionEvent]) -> None:
        for event in events:
            self._conversations.add_event(event)

    async def list(
        self, conversation_id: str, limit: int, *, since_ms: int = 0, until_ms: int | None = None
    ) -> Sequence[SessionEvent]:
        events = self._conversations.events(conversation_id)
        return [e for e in events if since_ms <= e.at_ms and (until_ms is None or e.at_ms < until_ms)][-limit:]


class MemoryOverviewStore:
    def __init__(
        self,
        *,
        sessions: MemorySessionStore,
        conversations: MemoryConversationStore,
        voice_calls: MemoryVoiceCallStore,
        audit: MemoryAuditStore,
        knowledge: MemoryKnowledgeStore,
    ) -> None:
        self._sessions = sessions
        self._conversations = conversations
        self._voice_calls = voice_calls
        self._audit = audit
        self._knowledge = knowledge

    async def sessions(
        self, limit: int, *, user: str | None = None, after: Place | None = None
    ) -> Sequence[SessionRecord]:
        owned = [each for each in self._sessions.all() if user in (None, each.user)]
        rest = [(newest_first(Place(each.updated_ms, each.id)), each) for each in owned]
        rest = [each for each in rest if after is None or each[0] > newest_first(after)]
        return [record for _, record in sorted(rest, key=lambda each: each[0])][:limit]

    async def conversations(
        self, limit: int, *, user: str | None = None, after: Place | None = None
    ) -> Sequence[Conversation]:
        owned = [each for each in self._conversations.all() if user in (None, each.user)]
        rest = [each for each in owned if after is None or newest_first(each.place) > newest_first(after)]
        return sorted(rest, key=lambda each: newest_first(each.place))[:limit]

    async def conversation(self, id: str) -> Conversation | None:
        return next((each for each in self._conversations.all() if each.id == id), None)

    async def turns(self, conversation_id: str, limit: int, before: int | None = None) -> Sequence[StoredTurn]:
        turns = await self._conversations.turns(conversation_id)
        return [turn for turn in turns if before is None or turn.seq < before][-limit:]

    async def voice_calls(self, conversation: Conversation, limit: int) -> Sequence[VoiceCall]:
        calls = await self._voice_calls.list(conversation.user, len(self._voice_calls))
        return [call for call in calls if call.conversation_id == conversation.id][:limit]

    async def users(self, limit: int) -> Sequence[UserActivity]:
        found: dict[str, UserActivity] = {}
        for each in self._conversations.all():
            known = found.get(each.user, UserActivity(each.user, 0, 0))
            updated_ms = max(known.updated_ms, each.updated_ms)
            found[each.user] = UserActivity(each.user, known.conversations + 1, updated_ms)
        return sorted(found.values(), key=lambda each: (-each.updated_ms, each.user))[:limit]

    async def audit(
        self, wanted: AuditFilter, limit: int, before: int | None = None
    ) -> Sequence[tuple[int, AuditLine]]:
        newest = reversed(await self._audit.read(limit=len(self._audit)))
        earlier = ((seq, line) for seq, line in newest if before is None or seq < before)
        return list(islice(((seq, line) for seq, line in earlier if wanted.matches(line)), limit))

    async def record_counts(self) -> Mapping[str, int]:
        return await self._knowledge.counts_by_namespace()
