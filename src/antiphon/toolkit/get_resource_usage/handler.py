"""How busy the server's computer is."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Final

import psutil

from antiphon.tools.context import Args, Context
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, ok

# The kernel counts in ticks of 10 ms, so a shorter sample is coarse. A longer one could exceed the budget of 300 ms on
# a busy machine, which is when users ask this most often.
SAMPLE_S: Final = 0.1
BYTES_PER_GB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_percent: float
    threads: int
    load_average: tuple[float, float, float]
    memory_percent: float
    memory_used_gb: float
    memory_available_gb: float
    memory_total_gb: float


async def execute(args: Args, context: Context) -> ToolResult:
    # psutil sleeps while it samples, so it runs in a worker thread.
    usage = await asyncio.to_thread(read_usage)
    return ok(
        asdict(usage) | {"load_average": list(usage.load_average)},
        spoken=speak(usage),
        flyout=Flyout(FlyoutType.TERMINAL, report(usage), title="Resource usage"),
    )


def read_usage() -> Usage:
    cpu_percent = psutil.cpu_percent(interval=SAMPLE_S)
    memory = psutil.virtual_memory()
    one, five, fifteen = (round(load, 2) for load in psutil.getloadavg())
    return Usage(
        cpu_percent=cpu_percent,
        threads=psutil.cpu_count() or 1,
        load_average=(one, five, fifteen),
        memory_percent=memory.percent,
        memory_used_gb=round(memory.used / BYTES_PER_GB, 1),
        memory_available_gb=round(memory.available / BYTES_PER_GB, 1),
        memory_total_gb=round(memory.total / BYTES_PER_GB, 1),
    )


def speak(usage: Usage) -> str:
    return (
        f"The processor is {round(usage.cpu_percent)} percent busy, "
        f"and {round(usage.memory_percent)} percent of the memory is in use."
    )


def report(usage: Usage) -> str:
    one, five, fifteen = usage.load_average
    return (
        f"Processor  {usage.cpu_percent:5.1f} % of {usage.threads} threads\n"
        f"Load       {one:.2f} (1 min)  {five:.2f} (5 min)  {fifteen:.2f} (15 min)\n"
        f"Memory     {usage.memory_percent:5.1f} %: {usage.memory_used_gb:.1f} GB used, "
        f"{usage.memory_available_gb:.1f} GB available of {usage.memory_total_gb:.1f} GB\n"
    )
