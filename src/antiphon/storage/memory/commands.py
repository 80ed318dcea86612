"""Commands for sessions in memory."""

from collections.abc import Collection, Mapping, Sequence

from antiphon.storage.base import StorageError
from antiphon.storage.commands import SessionCommand


class MemoryCommandStore:
    def __init__(self) -> None:
        self._commands: dict[str, SessionCommand] = {}
        self._taken: set[str] = set()
        self._results: dict[str, bytes] = {}

    async def put(self, command: SessionCommand) -> None:
        if command.id in self._commands:
            raise StorageError(f"There is a command {command.id} already.")
        self._commands[command.id] = command

    async def take(self, session_ids: Collection[str], now_ms: int) -> Sequence[SessionCommand]:
        wanted = [
            each
            for each in self._commands.values()
            if each.session_id in session_ids and each.id not in self._taken and each.expires_ms > now_ms
        ]
        self._taken.update(each.id for each in wanted)
        return wanted

    async def finish(self, id: str, result: bytes) -> None:
        if id in self._commands:
            self._results[id] = result

    async def results(self, ids: Collection[str]) -> Mapping[str, bytes]:
        return {id: self._results[id] for id in ids if id in self._results}

    async def remove(self, id: str) -> bool:
        known, taken = self._commands.pop(id, None), id in self._taken
        self._taken.discard(id)
        self._results.pop(id, None)
        return known is not None and not taken

    async def sweep(self, before_ms: int) -> int:
        expired = [id for id, command in self._commands.items() if command.expires_ms < before_ms]
        for id in expired:
            await self.remove(id)
        return len(expired)
