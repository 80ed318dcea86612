import asyncio
import json
import time
from pathlib import Path

import psutil
import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.get_resource_usage import handler
from antiphon.toolkit.get_resource_usage.handler import Usage, execute, report, speak
from antiphon.tools.arguments import compile_schema
from antiphon.tools.result import FlyoutType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
BUSY = Usage(23.5, 8, (1.9, 1.25, 0.8), 41.4, 6.4, 9.1, 15.5)


@pytest.mark.real_time
async def test_this_machine_is_measured() -> None:
    data = (await execute({}, make_context())).data
    assert data["threads"] == psutil.cpu_count()
    assert data["memory_total_gb"] == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)
    assert 0 < data["memory_available_gb"] <= data["memory_total_gb"]


@pytest.mark.real_time
async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.real_time
async def test_a_busy_machine_is_not_idle() -> None:
    async def burn() -> None:
        await asyncio.to_thread(_spin, time.monotonic() + 0.3)

    work = asyncio.create_task(burn())
    data = (await execute({}, make_context())).data
    await work
    assert data["cpu_percent"] > 0


@pytest.mark.real_time
async def test_the_loop_keeps_running_while_the_processor_is_sampled() -> None:
    turns = 0
    measuring = asyncio.create_task(execute({}, make_context()))
    while not measuring.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert measuring.result().ok
    assert turns >= 3


@pytest.mark.real_time
async def test_the_report_is_shown_in_the_terminal() -> None:
    flyout = (await execute({}, make_context())).flyout
    assert flyout is not None
    assert flyout.flyout_type is FlyoutType.TERMINAL
    assert [line.split()[0] for line in flyout.content.splitlines()] == ["Processor", "Load", "Memory"]


def test_the_sample_leaves_half_the_budget() -> None:
    assert SCHEMA["latencyBudgetMs"] / 2 >= handler.SAMPLE_S * 1000


def test_the_sentence_is_suitable_for_speech() -> None:
    assert speak(BUSY) == "The processor is 24 percent busy, and 41 percent of the memory is in use."


def test_the_report_is_aligned() -> None:
    assert report(BUSY) == (
        "Processor   23.5 % of 8 threads\n"
        "Load       1.90 (1 min)  1.25 (5 min)  0.80 (15 min)\n"
        "Memory      41.4 %: 6.4 GB used, 9.1 GB available of 15.5 GB\n"
    )


def _spin(until: float) -> None:
    while time.monotonic() < until:
        sum(range(1000))
