import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from antiphon.server.health import WARN_EVERY_S, LagCollector, LagMonitor, LagStats
from tests.fakes.virtual_loop import VirtualLoop


@pytest.fixture
async def monitor() -> AsyncIterator[LagMonitor]:
    monitor = LagMonitor()
    task = asyncio.create_task(monitor.run())
    yield monitor
    task.cancel()


async def block(seconds: float) -> None:
    """Blocks the loop like a long computation: only the clock advances."""
    await asyncio.sleep(0.001)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.offset_s += seconds
    await asyncio.sleep(0.05)


async def test_an_idle_loop_has_no_lag(monitor: LagMonitor) -> None:
    with capture_logs() as lines:
        await asyncio.sleep(5)
    assert monitor.stats.max_ms < 25
    assert lines == []


async def test_a_blocked_loop_is_measured_short_by_one_period_at_most(monitor: LagMonitor) -> None:
    with capture_logs():
        await block(0.2)
    assert 180 <= monitor.stats.max_ms <= 230


async def test_a_block_of_more_than_50_ms_is_logged(monitor: LagMonitor) -> None:
    with capture_logs() as lines:
        await block(0.2)
    assert [(line["log_level"], line["times"]) for line in lines] == [("warning", 1)]


async def test_many_blocks_are_logged_in_few_lines(monitor: LagMonitor) -> None:
    with capture_logs() as lines:
        for _ in range(10):
            await block(0.2)
        await asyncio.sleep(WARN_EVERY_S)
    assert [line["times"] for line in lines] == [1, 9]


def test_prometheus_reads_a_histogram_and_the_maximum() -> None:
    stats = LagStats()
    for lag_ms in (0.5, 7.0, 60.0, 60_000.0):
        stats.count(lag_ms)
    registry = CollectorRegistry()
    registry.register(LagCollector(stats))
    lines = generate_latest(registry).decode().splitlines()
    assert "antiphon_loop_lag_max_ms 60000.0" in lines
    assert "antiphon_loop_lag_ms_sum 60067.5" in lines
    assert 'antiphon_loop_lag_ms_bucket{le="10.0"} 2.0' in lines
    assert 'antiphon_loop_lag_ms_bucket{le="+Inf"} 4.0' in lines
