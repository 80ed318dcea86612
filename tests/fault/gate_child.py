"""A process that dies in the middle of an action: `gate_child.py DATABASE LEDGER`."""

import asyncio
import sys
from pathlib import Path

from antiphon.clock import SystemClock
from antiphon.storage.sql import open_database
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from tests.fakes.gates import Gate, make_action


async def main(database: Path | str, ledger: Path) -> None:
    async def transfer(args: Args, context: Context) -> ToolResult:
        with ledger.open("a") as lines:
            lines.write("transferred\n")
        print("in the handler", flush=True)
        await asyncio.sleep(60)
        return ok()

    gate = Gate(make_action("transfer", transfer), database=await open_database(database))
    gate.clock.at_ms = SystemClock().now_ms()
    await gate.call("transfer", {"text": "all"}, id="call_0123456789")


given = sys.argv[1]
asyncio.run(main(given if "://" in given else Path(given), Path(sys.argv[2])))
