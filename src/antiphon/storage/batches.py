"""Writes rows in batches, off the path of whoever adds them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from antiphon.telemetry.log import get_logger

Row = TypeVar("Row")

log = get_logger(__name__)


class Batches(Generic[Row]):
    """Rows are durable a moment after they were added, or after `flush`."""

    def __init__(
        self, write: Callable[[Sequence[Row]], Awaitable[None]], what: str, *, after_s: float, max_waiting: int
    ) -> None:
        """`what` names the rows in the log. While the store is down, `max_waiting` of them are kept; beyond this the
        oldest are dropped."""
        self._write = write
        self._what = what
        self._after_s = after_s
        self._max_waiting = max_waiting
        self._waiting: list[Row] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def add(self, row: Row) -> None:
        self._waiting.append(row)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._after_s, self._begin_flush)

    async def flush(self) -> None:
        """Writes everything that waits. If the store fails, this is logged and tried again with the next row."""
        async with self._lock:
            rows, self._waiting = self._waiting, []
            if not rows:
                return
            try:
                await self._write(rows)
            except Exception as error:
                self._waiting[:0] = rows
                lost = max(0, len(self._waiting) - self._max_waiting)
                del self._waiting[:lost]
                log.error("rows_not_written", what=self._what, error=str(error), waiting=len(self._waiting), lost=lost)

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
