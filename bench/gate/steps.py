"""Measures each step of the gate, with a stopwatch around the real steps of real calls.

A stopwatch takes time too. What it adds to its own reading is measured and subtracted. What it adds elsewhere does not
matter, since the total is measured without it.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from inspect import isawaitable
from time import perf_counter_ns
from typing import Any, Final
from unittest.mock import patch

from antiphon.tools import executor, gate
from antiphon.tools.journal import Journal
from bench.gate.contender import READS, Gate, decode
from bench.workload import CALLS_PER_TURN, HANDLER, Figures, measure

Step = Callable[..., Any]

STEPS: Final[dict[str, object]] = {
    "recall": Journal,
    "admit": gate,
    "budget": gate,
    "validate": gate,
    "clamp": gate,
    "is_unconfirmed": gate,
    "run": executor,
    "record": executor,
}
"""The gate's functions in order, each with the place where callers look it up."""

DECODE: Final = "(arguments decoded)"
AROUND: Final = "(around the steps)"


class Stopwatch:
    """Adds up the time that functions take, by name."""

    def __init__(self) -> None:
        self._spent_ns: Counter[str] = Counter()

    def watch(self, step: Step, name: str) -> Step:
        def watched(*args: Any) -> Any:
            started_ns = perf_counter_ns()
            result = step(*args)
            if isawaitable(result):
                return finish(result, started_ns)
            self._spent_ns[name] += perf_counter_ns() - started_ns
            return result

        async def finish(result: Any, started_ns: int) -> Any:
            awaited = await result
            self._spent_ns[name] += perf_counter_ns() - started_ns
            return awaited

        return watched

    def read_us(self, name: str, calls: int) -> float:
        """Returns the microseconds per call, less the reading of an empty stopwatch."""
        empty_ns = min(-(perf_counter_ns() - perf_counter_ns()) for _ in range(1_000))
        return (self._spent_ns[name] / calls - empty_ns) / 1000


async def measure_steps(contender: Gate, calls: int) -> Figures:
    """Returns the microseconds per call of each step, in order, and of what surrounds them, for a tool that reads."""
    stopwatch = Stopwatch()
    whole_us = await contender.measure(READS, calls) - await contender.measure_handler(calls)
    with ExitStack() as patches:
        for name, home in STEPS.items():
            patches.enter_context(patch.object(home, name, stopwatch.watch(getattr(home, name), name)))
        await contender.measure(READS, calls)
    await measure(stopwatch.watch(contender.handle, HANDLER), calls)
    figures = {DECODE: measure_decoding(calls), **{name: stopwatch.read_us(name, calls) for name in STEPS}}
    figures["run"] -= stopwatch.read_us(HANDLER, calls)
    return {**figures, AROUND: whole_us - sum(figures.values())}


def measure_decoding(calls: int) -> float:
    started_ns = perf_counter_ns()
    for number in range(calls):
        decode(number % CALLS_PER_TURN)
    return (perf_counter_ns() - started_ns) / 1000 / calls
