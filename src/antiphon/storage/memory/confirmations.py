"""Calls that wait for a person."""

from collections.abc import Sequence

from msgspec.structs import replace

from antiphon.storage.base import Confirmation


class MemoryConfirmationStore:
    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], dict[str, Confirmation]] = {}

    async def put(self, confirmation: Confirmation) -> None:
        owner = (confirmation.session_id, confirmation.user)
        self._waiting.setdefault(owner, {})[confirmation.token_hash] = confirmation

    async def take(self, token_hash: str, session_id: str, user: str) -> Confirmation | None:
        owner = (session_id, user)
        waiting = self._waiting.get(owner)
        if waiting is None:
            return None
        confirmation = waiting.pop(token_hash, None)
        if not waiting:
            del self._waiting[owner]
        return confirmation

    async def pending(self, session_id: str, user: str, now_ms: int) -> Sequence[Confirmation]:
        waiting = self._waiting.get((session_id, user))
        return [one for one in waiting.values() if one.expires_ms > now_ms] if waiting else ()

    async def rehash(self, old_hash: str, new_hash: str, session_id: str, user: str) -> bool:
        waiting = self._waiting.get((session_id, user), {})
        if old_hash not in waiting:
            return False
        renamed = {new_hash if key == old_hash else key: one for key, one in waiting.items()}
        renamed[new_hash] = replace(waiting[old_hash], token_hash=new_hash)
        self._waiting[session_id, user] = renamed
        return True

    async def sweep(self, now_ms: int) -> int:
        expired = [one for waiting in self._waiting.values() for one in waiting.values() if one.expires_ms <= now_ms]
        for one in expired:
            await self.take(one.token_hash, one.session_id, one.user)
        return len(expired)
