"""Recordings, in memory."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from antiphon.storage.base import StorageError
from antiphon.storage.conversations import ConversationGone
from antiphon.storage.memory.conversations import MemoryConversationStore
from antiphon.storage.recordings import Recording


class MemoryRecordingStore:
    def __init__(self, conversations: MemoryConversationStore, *, keeps_sound: bool = False) -> None:
        self.keeps_sound = keeps_sound
        self._conversations = conversations
        self._rows: dict[str, Recording] = {}
        self._parts: dict[tuple[str, int], bytes] = {}

    @property
    def _kept(self) -> dict[str, Recording]:
        """The recordings whose conversations were not deleted."""
        self._rows = {
            id: each for id, each in self._rows.items() if self._conversations.has_stored(each.conversation_id)
        }
        self._parts = {key: data for key, data in self._parts.items() if key[0] in self._rows}
        return self._rows

    async def add(self, recording: Recording) -> None:
        if not self._conversations.has_stored(recording.conversation_id):
            raise ConversationGone(recording.conversation_id)
        if recording.id in self._kept:
            raise StorageError(f"There is a recording {recording.id} already.")
        self._rows[recording.id] = recording

    async def save(self, recording: Recording) -> bool:
        known = self._kept.get(recording.id)
        if known is None:
            return False
        self._rows[recording.id] = replace(
            known, duration_ms=recording.duration_ms, size_bytes=recording.size_bytes, marks=recording.marks
        )
        return True

    async def get(self, id: str, user: str) -> Recording | None:
        found = self._kept.get(id)
        return found if found is not None and found.user == user else None

    async def list(self, user: str, conversation_id: str | None = None) -> Sequence[Recording]:
        return self._matching(lambda each: each.user == user and conversation_id in (None, each.conversation_id))

    async def find(self, files: Sequence[str]) -> Sequence[Recording]:
        return self._matching(lambda each: each.file in files)

    async def delete(
        self, user: str, *, id: str | None = None, conversation_id: str | None = None, call_id: str | None = None
    ) -> Sequence[Recording]:
        owned = await self.list(user, conversation_id)
        return self._forget([each for each in owned if call_id in (None, each.call_id) and id in (None, each.id)])

    async def delete_before(self, at_ms: int) -> Sequence[Recording]:
        return self._forget(self._matching(lambda each: each.started_ms < at_ms))

    async def add_part(self, id: str, number: int, data: bytes) -> bool:
        if id not in self._kept:
            return False
        self._parts.setdefault((id, number), data)
        return True

    async def part(self, id: str, number: int) -> bytes | None:
        return self._parts.get((id, number)) if id in self._kept else None

    async def mark_stored(self, id: str) -> bool:
        known = self._kept.get(id)
        if known is None:
            return False
        self._rows[id] = replace(known, is_stored=True)
        return True

    def _matching(self, matches: Callable[[Recording], bool]) -> Sequence[Recording]:
        found = [each for each in self._kept.values() if matches(each)]
        return sorted(found, key=lambda each: (each.started_ms, each.id))

    def _forget(self, recordings: Sequence[Recording]) -> Sequence[Recording]:
        for each in recordings:
            del self._rows[each.id]
        return recordings
