"""kill -9 between "started" and "done": the action is never run a second time."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon.authoring.testing import StillClock
from antiphon.clock import SystemClock
from antiphon.storage.sql import open_database
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, ok
from tests.fakes.gates import Gate, make_action
from tests.fakes.tree import PYTHON_PATH, ROOT

pytestmark = pytest.mark.real_time

CHILD = Path(__file__).with_name("gate_child.py")


class Aftermath:
    """What a killed process leaves behind: a database, and the traces of the action."""

    def __init__(self, folder: Path, database: Path | str) -> None:
        self.database, self.ledger = database, folder / "ledger"

    async def die(self) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(CHILD),
            str(self.database),
            str(self.ledger),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            env={"PYTHONPATH": PYTHON_PATH},
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"in the handler\n"
        process.kill()
        await process.communicate()

    async def redeliver(self, *, seconds_later: float, id: str | None = "call_0123456789") -> ToolResult:
        async def transfer(args: Args, context: Context) -> ToolResult:
            with self.ledger.open("a") as lines:
                lines.write("transferred again\n")
            return ok()

        database = await open_database(self.database)
        clock = StillClock(SystemClock().now_ms() + round(seconds_later * 1000))
        gate = Gate(make_action("transfer", transfer), database=database, clock=clock)
        result = await gate.call("transfer", {"text": "all"}, id=id)
        await gate.executor.aclose()
        await database.aclose()
        return result


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the database is: a file, or an address."""
    return tmp_path / "a.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def aftermath(tmp_path: Path, place: Path | str) -> AsyncIterator[Aftermath]:
    aftermath = Aftermath(tmp_path, place)
    await aftermath.die()
    yield aftermath
    assert aftermath.ledger.read_text() == "transferred\n"


@pytest.mark.parametrize("id", ["call_0123456789", "call_abcdefghi", None])
async def test_a_redelivered_call_reports_an_unknown_outcome(aftermath: Aftermath, id: str | None) -> None:
    result = await aftermath.redeliver(seconds_later=3600, id=id)
    assert result.error is not None
    assert result.error.type is ErrorType.CONFLICT
    assert result.error.details == {"outcome": "unknown"}


async def test_a_redelivered_call_right_after_the_crash_reports_an_unknown_outcome_once_the_lease_expires(
    aftermath: Aftermath,
) -> None:
    result = await aftermath.redeliver(seconds_later=0)
    assert result.error is not None
    assert result.error.details == {"outcome": "unknown"}
