"""The health of the server: whether it can serve now, and how late its event loop is."""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from antiphon.server.refusals import STOPPING
from antiphon.storage.base import STORE_UNAVAILABLE, StorageError
from antiphon.telemetry.log import get_logger

CHECK_S: Final = 2.0
"""How long the store may take for a write before it counts as unavailable."""
KEEP_S: Final = 1.0
"""How long the result of a check is reused, so that frequent requests do not cause frequent writes."""

log = get_logger(__name__)


class Readiness:
    """Finds what keeps the server from serving. Concurrent requests share one check of the store."""

    def __init__(self, check_store: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        self._check_store = check_store
        self._stopping = stopping
        self._check: asyncio.Task[str | None] | None = None
        self._checked_s = 0.0
        self._reason: str | None = None

    async def find_problems(self) -> list[str]:
        problems = [STOPPING] if self._stopping.is_set() else []
        if not await self._store_is_writable():
            problems.append(STORE_UNAVAILABLE)
        return problems

    async def _store_is_writable(self) -> bool:
        loop = asyncio.get_running_loop()
        if self._check is None or (self._check.done() and loop.time() - self._checked_s > KEEP_S):
            self._check = loop.create_task(self._find_reason())
        # It continues after the deadline: a statement that waits for a lock cannot be cancelled.
        done, _ = await asyncio.wait([self._check], timeout=CHECK_S)
        reason = self._check.result() if done else f"nothing could be stored within {CHECK_S:g} seconds"
        if reason != self._reason:
            self._reason = reason
            if reason is None:
                log.info("store_available")
            else:
                log.error("store_unavailable", error=reason)
        return reason is None

    async def _find_reason(self) -> str | None:
        """Returns why nothing can be stored, or None if it can."""
        try:
            await self._check_store()
        except StorageError as error:
            return str(error)
        finally:
            self._checked_s = asyncio.get_running_loop().time()
        return None


# A block is measured from when the next probe is due, so it reads up to one period short. A hundred probes a second
# cost about 0.2 % of a core.
PERIOD_S: Final = 0.01
WARN_MS: Final = 50.0
WARN_EVERY_S: Final = 10.0
BUCKETS_MS: Final = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0)

_log = get_logger(__name__)


@dataclass(slots=True)
class LagStats:
    """How late the probes were since the process started."""

    max_ms: float = 0.0
    total_ms: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_MS) + 1))

    def count(self, lag_ms: float) -> None:
        self.max_ms = max(self.max_ms, lag_ms)
        self.total_ms += lag_ms
        self.buckets[bisect_left(BUCKETS_MS, lag_ms)] += 1


class LagMonitor:
    """Wakes up often and measures how late it is. `run` continues until it is cancelled."""

    def __init__(self) -> None:
        self.stats = LagStats()
        self._late = 0
        self._worst_ms = 0.0
        self._warn_after_s = 0.0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            now_s = loop.time()
            self._note(max(0.0, (now_s - due_s) * 1000), now_s)

    def _note(self, lag_ms: float, now_s: float) -> None:
        self.stats.count(lag_ms)
        if lag_ms > WARN_MS:
            self._late += 1
            self._worst_ms = max(self._worst_ms, lag_ms)
        # A line for every block would burden a machine that is already too slow.
        if self._late and now_s >= self._warn_after_s:
            _log.warning("event_loop_blocked", times=self._late, worst_ms=round(self._worst_ms))
            self._late, self._worst_ms, self._warn_after_s = 0, 0.0, now_s + WARN_EVERY_S


class LagCollector(Collector):
    """Exports the lag to Prometheus."""

    def __init__(self, stats: LagStats) -> None:
        self._stats = stats

    def collect(self) -> Iterable[GaugeMetricFamily | HistogramMetricFamily]:
        edges = [*map(str, BUCKETS_MS), "+Inf"]
        lag = HistogramMetricFamily("antiphon_loop_lag_ms", "How late the event loop wakes")
        lag.add_metric([], list(zip(edges, accumulate(self._stats.buckets), strict=True)), self._stats.total_ms)
        return [
            lag,
            GaugeMetricFamily("antiphon_loop_lag_max_ms", "The worst lag since the start", value=self._stats.max_ms),
        ]
