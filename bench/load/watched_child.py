"""The server of `tests/wire/served_child.py`, which also records how long its event loop runs without a break.

It measures processor time, so that other processes on the core do not count.
"""

import asyncio
import time
from pathlib import Path
from typing import Final

from tests.wire.served import Plan
from tests.wire.served_child import run

FILE: Final = "steps"
PROBE_S: Final = 0.002
LEAST_S: Final = 0.004
"""Shorter steps are not recorded."""


async def watched(plan: Plan) -> None:
    watching = asyncio.create_task(watch(plan.settings.project_dir / FILE))
    await run(plan)
    watching.cancel()


async def watch(path: Path) -> None:
    """Writes one line per step, in milliseconds. A step may read up to one probe interval too long."""
    with path.open("w", buffering=1) as file:
        before_s = time.thread_time()
        while True:
            await asyncio.sleep(PROBE_S)
            now_s = time.thread_time()
            if now_s - before_s >= LEAST_S:
                file.write(f"{(now_s - before_s) * 1_000:.1f}\n")
            before_s = time.thread_time()


if __name__ == "__main__":
    from tests.wire.served_child import main

    main(watched)
