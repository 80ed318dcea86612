"""What every contender is given: the same tool, the same arguments, the same result, and the same clock.

It runs in the peers' environment too, so it imports nothing but the standard library.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

CALLS_PER_TURN: Final = 5
"""As many look-ups as our gate allows in one turn of the user."""

KB_SEARCH: Final = Path(__file__).parent / "kb_search"

_example: Final = json.loads((KB_SEARCH / "example.json").read_bytes())

PARAMETERS: Final[dict[str, Any]] = json.loads((KB_SEARCH / "schema.json").read_bytes())["parameters"]
RESULT: Final[dict[str, Any]] = _example["result"]

ARGUMENTS: Final[list[dict[str, Any]]] = [
    {**_example["args"], "query": f"{_example['args']['query']} {place}"} for place in range(CALLS_PER_TURN)
]
"""One for each call of a turn, since our gate refuses to run the very same call over and over."""

ARGUMENT_TEXTS: Final = [json.dumps(arguments) for arguments in ARGUMENTS]
"""The same as a model writes them."""

HANDLER: Final = "handler"
"""Every contender's figures have one of this name: the handler alone, in the same loop."""

Call = Callable[[int], Awaitable[object]]
"""Makes the call with this place in its turn, and raises if it did not succeed."""

Figures = dict[str, float]
"""Microseconds a call, by what was measured."""


async def measure(call: Call, calls: int, begin_turn: Callable[[], object] = lambda: None) -> float:
    """Microseconds a call, the loop around the calls included; time the bare handler alike to take it away."""
    gc.collect()
    started_ns = perf_counter_ns()
    for _ in range(calls // CALLS_PER_TURN):
        begin_turn()
        for place in range(CALLS_PER_TURN):
            await call(place)
        # A server comes back to its loop between turns; without that, cancelled timers would pile up in it.
        await asyncio.sleep(0)
    return (perf_counter_ns() - started_ns) / 1000 / calls


async def compete(handler: Call, **ways: Call) -> None:
    """What a contender does until its parent has had enough: measures its handler, and each way to call its tool."""

    async def measure_all(calls: int) -> Figures:
        return {name: await measure(call, calls) for name, call in {HANDLER: handler, **ways}.items()}

    await answer(measure_all)


async def answer(measure_round: Callable[[int], Awaitable[Figures]]) -> None:
    """Measures a round for each line of input that names a number of calls, and prints the figures as JSON.

    Reading blocks the event loop, which keeps the rounds of other contenders free of this one.
    """
    await measure_round(20 * CALLS_PER_TURN)
    print("ready", flush=True)
    for line in sys.stdin:
        turns = max(1, int(line) // CALLS_PER_TURN)
        print(json.dumps(await measure_round(turns * CALLS_PER_TURN)), flush=True)
