"""The audit: one line a call, written in batches beside the hot path, at once where something was changed."""

import asyncio
from typing import Final

from antiphon.storage.base import AuditLine, AuditStore
from antiphon.telemetry.log import get_logger

FLUSH_AFTER_S: Final = 0.2
MAX_WAITING_LINES: Final = 100_000
"""While the store is down lines wait here; beyond this the oldest are given up, and the log says how many."""

log = get_logger(__name__)


class AuditLog:
    def __init__(self, store: AuditStore, *, keep_arguments: bool = False) -> None:
        self.keep_arguments = keep_arguments
        self._store = store
        self._waiting: list[AuditLine] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def add(self, line: AuditLine) -> None:
        """Takes a line; it is durable within a fraction of a second, or after `flush`."""
        self._waiting.append(line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER_S, self._begin_flush)

    async def flush(self) -> None:
        """Makes every line taken so far durable. A store that fails is logged and tried again later."""
        async with self._lock:
            lines, self._waiting = self._waiting, []
            if not lines:
                return
            try:
                await self._store.append(lines)
            except Exception as error:
                self._waiting[:0] = lines
                lost = len(self._waiting) - MAX_WAITING_LINES
                if lost > 0:
                    del self._waiting[:lost]
                log.error("audit_not_written", error=str(error), waiting=len(self._waiting), lost=max(lost, 0))

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing is not None:
            await self._flushing
        await self.flush()

    def _begin_flush(self) -> None:
        self._timer = None
        self._flushing = asyncio.get_running_loop().create_task(self.flush())
