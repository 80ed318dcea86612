"""The clock of the database server, which all processes share.

The clocks of two machines may be seconds apart. A lease that one process has written, and that another one finds over,
must be measured by one clock, and so must a reminder that one process has set and another one rings.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, tzinfo
from typing import Final

from sqlalchemy import BigInteger, ColumnElement, literal_column

from antiphon.storage.base import StorageError

MEASURED_EVERY_S: Final = 15.0
LONGEST_ANSWER_S: Final = 1.0
"""An answer that took longer tells little about the time, so the older one is kept."""


class DatabaseClock:
    """Goes on from the last time that the server told, by this machine's monotonic clock. So it does not depend on the
    machine's time of day, and is as exact as half the time of an answer."""

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        """`ask` returns the server's time, in milliseconds."""
        self._ask = ask
        self._ahead_ms = time.time() * 1000 - self._uptime_ms()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Asks the server once, and from then on every few seconds."""
        await self.measure()
        self._task = asyncio.create_task(self._follow())

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def measure(self) -> None:
        before_ms = self._uptime_ms()
        told_ms = await self._ask()
        after_ms = self._uptime_ms()
        if after_ms - before_ms <= LONGEST_ANSWER_S * 1000:
            self._ahead_ms = told_ms - (before_ms + after_ms) / 2

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp((self._ahead_ms + self._uptime_ms()) / 1000, UTC).astimezone(zone)

    def now_ms(self) -> int:
        return int(self._ahead_ms + self._uptime_ms())

    # The built-in itself, as in `SystemClock`.
    monotonic = staticmethod(time.perf_counter)

    @staticmethod
    def _uptime_ms() -> float:
        return time.monotonic() * 1000

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(MEASURED_EVERY_S)
            try:
                await self.measure()
            except StorageError:
                continue  # The clock goes on, and whoever needs the database notices that it is away.


def now_ms_of(dialect: str) -> ColumnElement[int]:
    """The time of a statement on the database's own clock, in Unix milliseconds."""
    if dialect == "postgresql":
        return literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", BigInteger)
    return literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)", BigInteger)
