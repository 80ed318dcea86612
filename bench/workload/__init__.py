"""What all contenders share: the same tool, arguments, result and clock.

It also runs in the peers' environment, so it only imports the standard library.
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
"""The number of look-ups that our gate allows in one turn."""

KB_SEARCH: Final = Path(__file__).parent / "kb_search"

_example: Final = json.loads((KB_SEARCH / "example.json").read_bytes())

PARAMETERS: Final[dict[str, Any]] = json.loads((KB_SEARCH / "schema.json").read_bytes())["parameters"]
RESULT: Final[dict[str, Any]] = _example["result"]

ARGUMENTS: Final[list[dict[str, Any]]] = [
    {**_example["args"], "query": f"{_example['args']['query']} {place}"} for place in range(CALLS_PER_TURN)
]
"""One set of arguments for each call of a turn, since our gate refuses repeated identical calls."""

ARGUMENT_TEXTS: Final = [json.dumps(arguments) for arguments in ARGUMENTS]
"""The arguments as a model writes them."""

HANDLER: Final = "handler"
"""The name of the figure for the handler alone, in the same loop, which every contender has."""

Call = Callable[[int], Awaitable[object]]
"""Makes the call with this place in its turn, and raises if it did not succeed."""

Figures = dict[str, float]
"""Microseconds per call, by name."""


async def measure(call: Call, calls: int, begin_turn: Callable[[], object] = lambda: None) -> float:
    """Returns the microseconds per call, including the loop. Measure the bare handler alike to subtract it."""
    gc.collect()
    started_ns = perf_counter_ns()
    for _ in range(calls // CALLS_PER_TURN):
        begin_turn()
        for place in range(CALLS_PER_TURN):
            await call(place)
        # A server returns to its event loop between turns; otherwise cancelled timers would pile up.
        await asyncio.sleep(0)
    return (perf_counter_ns() - started_ns) / 1000 / calls


async def compete(handler: Call, **ways: Call) -> None:
    """Runs a contender until its parent ends it: measures its handler, and each way to call its tool."""

    async def measure_all(calls: int) -> Figures:
        return {name: await measure(call, calls) for name, call in {HANDLER: handler, **ways}.items()}

    await answer(measure_all)


async def answer(measure_round: Callable[[int], Awaitable[Figures]]) -> None:
    """Measures a round for each line of input that names a number of calls, and prints the figures as JSON.

    Reading blocks the event loop, so that this process does not disturb the rounds of other contenders.
    """
    await measure_round(20 * CALLS_PER_TURN)
    print("ready", flush=True)
    for line in sys.stdin:
        turns = max(1, int(line) // CALLS_PER_TURN)
        print(json.dumps(await measure_round(turns * CALLS_PER_TURN)), flush=True)
