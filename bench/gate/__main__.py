"""`python -m bench.gate memory|sqlite|steps`: one of our contenders, which measures a round for each line of input."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from antiphon.storage.memory import MemoryDatabase
from antiphon.storage.sql import Database, open_database
from bench.gate.contender import READS, WRITES, Gate, load_tools
from bench.gate.steps import measure_steps
from bench.workload import HANDLER, Figures, answer


async def main(kind: str, folder: Path) -> None:
    registry = load_tools(folder)
    database: MemoryDatabase | Database
    database = await open_database(folder / "bench.db") if kind == "sqlite" else MemoryDatabase()
    gate = Gate(registry, database)

    async def measure_calls(calls: int) -> Figures:
        return {
            HANDLER: await gate.measure_handler(calls),
            "reading": await gate.measure(READS, calls),
            "writing": await gate.measure(WRITES, calls),
        }

    async def measure_each_step(calls: int) -> Figures:
        return await measure_steps(gate, calls)

    try:
        await answer(measure_each_step if kind == "steps" else measure_calls)
    finally:
        await gate.aclose()
        await database.aclose()


if __name__ == "__main__":
    # Next to the results, not in /tmp, which is often in memory and would make SQLite look faster.
    with TemporaryDirectory(dir=sys.argv[2]) as folder:
        asyncio.run(main(sys.argv[1], Path(folder)))
