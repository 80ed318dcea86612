"""Conversations and voice calls in memory."""

from collections.abc import Collection, Mapping, Sequence
from itertools import count, islice
from typing import Final

from msgspec.structs import asdict, replace

from antiphon.storage.base import StorageError
from antiphon.storage.conversations import Conversation, ConversationGone, Place, StoredTurn, Turn, VoiceCall
from antiphon.storage.events import SessionEvent
from antiphon.storage.memory.sessions import MemorySessionStore
from antiphon.storage.sessions import Fence, SentMessages, SessionRecord

CONVERSATIONS_KEPT: Final = 10_000
VOICE_CALLS_KEPT: Final = 10_000


class _Kept:
    """A conversation with its turns and events."""

    __slots__ = ("conversation", "events", "numbers", "turns")

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.turns: dict[int, StoredTurn] = {}
        self.events: list[SessionEvent] = []
        self.numbers = count(1)


def newest_first(place: Place) -> tuple[int, str]:
    return -place.updated_ms, place.id


class MemoryConversationStore:
    def __init__(self, sessions: MemorySessionStore, kept: int = CONVERSATIONS_KEPT) -> None:
        self._sessions = sessions
        self._most = kept
        self._kept: dict[str, _Kept] = {}
        """Sorted by use, the least recent first."""

    async def create(self, conversation: Conversation) -> None:
        if conversation.id in self._kept:
            raise StorageError(f"There is a conversation {conversation.id} already.")
        self._kept[conversation.id] = _Kept(conversation)
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    def has_stored(self, id: str) -> bool:
        return id in self._kept

    async def get(self, id: str, user: str) -> Conversation | None:
        kept = self._kept.get(id)
        return kept.conversation if kept is not None and kept.conversation.user == user else None

    async def list(self, user: str, limit: int, after: Place | None = None) -> Sequence[Conversation]:
        owned = (kept.conversation for kept in self._kept.values() if kept.conversation.user == user)
        rest = [each for each in owned if after is None or newest_first(each.place) > newest_first(after)]
        return sorted(rest, key=lambda each: newest_first(each.place))[:limit]

    async def append_many(
        self,
        conversation_id: str,
        turns: Sequence[Turn],
        fence: Fence | None,
        *,
        sent: SentMessages = (),
        record: SessionRecord | None = None,
    ) -> Sequence[int]:
        self._sessions.check(fence)
        kept = self._kept.pop(conversation_id, None)
        if kept is None:
            raise ConversationGone(conversation_id)
        self._kept[conversation_id] = kept
        self._tell(fence, sent)
        if record is not None:
            await self._sessions.save(record)
        numbers = []
        for turn in turns:
            seq = next(kept.numbers)
            kept.turns[seq] = StoredTurn(conversation_id, seq, **asdict(turn))
            kept.conversation = replace(kept.conversation, updated_ms=turn.at_ms)
            numbers.append(seq)
        return numbers

    async def amend(
        self, conversation_id: str, seq: int, turn: Turn, fence: Fence | None, *, sent: SentMessages = ()
    ) -> bool:
        self._sessions.check(fence)
        kept = self._kept.get(conversation_id)
        if kept is None or seq not in kept.turns:
            return False
        self._tell(fence, sent)
        kept.turns[seq] = StoredTurn(conversation_id, seq, **asdict(turn))
        return True

    def _tell(self, fence: Fence | None, sent: SentMessages) -> None:
        outbox = None if fence is None else self._sessions.outbox(fence.session_id)
        if outbox is not None:
            outbox.add(sent)

    async def turns(self, conversation_id: str, after_seq: int = 0, limit: int | None = None) -> Sequence[StoredTurn]:
        kept = self._kept.get(conversation_id)
        if kept is None:
            return []
        return [*islice((turn for turn in kept.turns.values() if turn.seq > after_seq), limit)]

    async def last_seqs(self, ids: Collection[str]) -> Mapping[str, int]:
        found = {id: self._kept[id].turns for id in ids if id in self._kept}
        return {id: max(turns) for id, turns in found.items() if turns}

    async def clear(self, conversation_id: str, fence: Fence | None) -> None:
        self._sessions.check(fence)
        kept = self._kept.get(conversation_id)
        if kept is not None:
            kept.turns.clear()
            kept.events.clear()
        outbox = None if fence is None else self._sessions.outbox(fence.session_id)
        if outbox is not None:
            outbox.clear()

    async def delete(self, id: str, user: str) -> bool:
        if await self.get(id, user) is None:
            return False
        del self._kept[id]
        return True

    async def delete_before(self, at_ms: int) -> int:
        old = [id for id, kept in self._kept.items() if kept.conversation.updated_ms < at_ms]
        for id in old:
            del self._kept[id]
        return len(old)

    def all(self) -> Sequence[Conversation]:
        """Returns the conversations of all users, in any order."""
        return [kept.conversation for kept in self._kept.values()]

    def add_event(self, event: SessionEvent) -> None:
        kept = self._kept.get(event.conversation_id)
        if kept is not None:
            kept.events.append(event)

    def events(self, conversation_id: str) -> Sequence[SessionEvent]:
        kept = self._kept.get(conversation_id)
        return () if kept is None else kept.events


class MemoryVoiceCallStore:
    def __init__(self, sessions: MemorySessionStore, kept: int = VOICE_CALLS_KEPT) -> None:
        self._sessions = sessions
        self._most = kept
        self._calls: dict[str, VoiceCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def begin(self, call: VoiceCall, fence: Fence | None) -> None:
        self._sessions.check(fence)
        if call.id in self._calls:
            raise StorageError(f"There is a voice call {call.id} already.")
        self._calls[call.id] = call
        if len(self._calls) > self._most:
            del self._calls[next(iter(self._calls))]

    async def end(self, ended: VoiceCall, fence: Fence | None) -> bool:
        self._sessions.check(fence)
        call = self._calls.get(ended.id)
        if call is None or call.ended_ms is not None:
            return False
        self._calls[ended.id] = ended
        return True

    async def set_summary(self, id: str, summary: str) -> bool:
        call = self._calls.get(id)
        if call is None or call.ended_ms is None:
            return False
        self._calls[id] = replace(call, summary=summary)
        return True

    async def get(self, id: str, user: str) -> VoiceCall | None:
        call = self._calls.get(id)
        return call if call is not None and call.user == user else None

    async def list(self, user: str, limit: int) -> Sequence[VoiceCall]:
        found = [call for call in self._calls.values() if call.user == user]
        return sorted(found, key=lambda each: (-each.started_ms, each.id))[:limit]

    async def latest_ended(self, conversation_id: str, user: str) -> VoiceCall | None:
        calls = await self.list(user, len(self._calls))
        return next((c for c in calls if c.conversation_id == conversation_id and c.ended_ms is not None), None)

    async def delete(self, id: str, user: str) -> bool:
        return self._forget([call for call in self._calls.values() if (call.id, call.user) == (id, user)]) == 1

    async def clear(self, user: str) -> int:
        return self._forget([call for call in self._calls.values() if call.user == user])

    async def delete_before(self, at_ms: int) -> int:
        return self._forget([call for call in self._calls.values() if call.started_ms < at_ms])

    def _forget(self, calls: Sequence[VoiceCall]) -> int:
        for call in calls:
            del self._calls[call.id]
        return len(calls)
