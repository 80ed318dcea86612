"""Idempotency: one delivery runs, every other one of the same call gets its result."""

import asyncio
from collections.abc import Sequence

import pytest

from antiphon.authoring.testing import StillClock
from antiphon.storage.base import CallRecord
from antiphon.storage.memory import MemoryCallStore, MemoryDatabase
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.journal import LEASE_MS
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.spec import Mode, SideEffects
from tests.fakes.calls import LoopClock
from tests.fakes.gates import Counted, Gate, make_action, make_retrieval, make_tool

ONE, OTHER = "call_aaaaaaaaa", "call_bbbbbbbbb"


def taking(seconds: float) -> Counted:
    async def answer(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(seconds)
        return ok("done")

    return Counted(answer)


def slow() -> Counted:
    return taking(1)


class RenewedCalls(MemoryCallStore):
    """Counts how often leases are renewed."""

    renewals = 0

    async def renew(self, records: Sequence[CallRecord], lease_until_ms: int) -> None:
        self.renewals += 1
        await super().renew(records, lease_until_ms)


async def test_a_redelivered_call_gets_the_stored_result() -> None:
    handler = Counted()
    gate = Gate(make_action("write_it", handler))
    first = await gate.call("write_it", id=ONE)
    again = await gate.call("write_it", id=ONE)
    assert handler.runs == 1
    assert again.data == first.data
    assert again.meta is not None
    assert again.meta.cache_hit


async def test_a_writing_call_under_a_new_id_is_the_same_call() -> None:
    handler = Counted()
    gate = Gate(make_action("write_it", handler))
    await gate.call("write_it", id=ONE)
    again = await gate.call("write_it", id=OTHER)
    assert again.ok
    assert handler.runs == 1


async def test_a_reading_call_under_a_new_id_is_a_new_call() -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    await gate.call("read_it", id=ONE)
    await gate.call("read_it", id=OTHER)
    assert handler.runs == 2


async def test_two_equal_calls_of_one_message_are_two_calls() -> None:
    handler = Counted()
    gate = Gate(make_action("write_it", handler))
    await gate.call("write_it", id=ONE)
    await gate.call("write_it", id=OTHER, occurrence=1)
    assert handler.runs == 2


async def test_the_next_turn_may_repeat_the_call() -> None:
    handler = Counted()
    gate = Gate(make_action("write_it", handler))
    await gate.call("write_it")
    gate.next_turn()
    await gate.call("write_it")
    assert handler.runs == 2


@pytest.mark.parametrize("make", [make_action, make_tool, make_retrieval])
async def test_an_id_that_is_used_for_two_calls_identifies_neither(make: object) -> None:
    handler = Counted()
    gate = Gate(make("it", handler))  # type: ignore[operator]
    await gate.call("it", {"text": "a"}, id=ONE)
    other = await gate.call("it", {"text": "b"}, id=ONE)
    assert other.data == {"run": 2}


async def test_sessions_do_not_share_results() -> None:
    handler = Counted()
    gate = Gate(make_action("write_it", handler))
    await gate.call("write_it", id=ONE)
    await gate.call("write_it", id=ONE, session=gate.new_session("s2"))
    assert handler.runs == 2


async def test_duplicates_of_a_running_call_wait_for_it() -> None:
    handler = slow()
    gate = Gate(make_action("write_it", handler))
    results = await asyncio.gather(*(gate.call("write_it", id=ONE) for _ in range(50)))
    assert handler.runs == 1
    assert {result.data for result in results} == {"done"}


async def test_a_cancelled_duplicate_does_not_cancel_others() -> None:
    gate = Gate(make_action("write_it", slow()))
    owner, duplicate, other = (asyncio.create_task(gate.call("write_it", id=ONE)) for _ in range(3))
    await asyncio.sleep(0.1)
    duplicate.cancel()
    assert (await owner).data == "done"
    assert (await other).data == "done"


async def test_refusals_are_not_stored() -> None:
    gate = Gate(make_tool("read_it", allowed_modes=(Mode.VOICE,)))
    assert not (await gate.call("read_it", id=ONE)).ok
    gate.session.mode = Mode.VOICE
    assert (await gate.call("read_it", id=ONE)).ok


async def test_failures_of_a_writing_handler_are_stored() -> None:
    async def fall(args: Args, context: Context) -> ToolResult:
        raise RuntimeError("half way")

    handler = Counted(fall)
    gate = Gate(make_action("write_it", handler))
    await gate.call("write_it", id=ONE)
    again = await gate.call("write_it", id=ONE)
    assert again.error is not None
    assert again.error.type is ErrorType.INTERNAL
    assert handler.runs == 1


class Crashed:
    """A process that died between "started" and "done": its record is all that is left."""

    def __init__(self, **overrides: object) -> None:
        self.handler = Counted()
        self.clock = StillClock()
        self.database = MemoryDatabase()
        self.tool = make_action("write_it", self.handler, **overrides)

    async def call(self, seconds_later: float) -> ToolResult:
        dead = Gate(make_action("write_it", slow()), database=self.database, clock=self.clock)
        call = asyncio.create_task(dead.call("write_it", id=ONE))
        await asyncio.sleep(0.1)
        for action in list(dead.executor._actions):
            action.cancel()
        await asyncio.gather(call, return_exceptions=True)
        self.clock.advance(seconds=seconds_later)
        return await Gate(self.tool, database=self.database, clock=self.clock).call("write_it", id=ONE)


async def test_a_started_call_of_unknown_outcome_is_never_run_again() -> None:
    crashed = Crashed()
    result = await crashed.call(seconds_later=60)
    assert result.error is not None
    assert result.error.type is ErrorType.CONFLICT
    assert result.error.details == {"outcome": "unknown"}
    assert result.error.partial_side_effects
    assert crashed.handler.runs == 0


async def test_a_duplicate_waits_no_longer_than_a_lease_for_an_owner_that_is_gone() -> None:
    crashed = Crashed()
    began = asyncio.get_running_loop().time()
    result = await crashed.call(seconds_later=0)
    assert asyncio.get_running_loop().time() - began < 2 * LEASE_MS / 1000
    assert result.error is not None
    assert result.error.details == {"outcome": "unknown"}
    assert crashed.handler.runs == 0


async def test_an_outcome_reported_as_unknown_stays_unknown() -> None:
    crashed = Crashed()
    await crashed.call(seconds_later=0)
    again = await Gate(crashed.tool, database=crashed.database, clock=crashed.clock).call("write_it", id=ONE)
    assert again.error is not None
    assert again.error.details == {"outcome": "unknown"}
    assert await crashed.database.calls.unfinished("s1") == []
    assert crashed.handler.runs == 0


async def test_a_duplicate_in_another_process_waits_for_a_live_owner() -> None:
    database, handler = MemoryDatabase(), Counted()
    one = Gate(make_action("write_it", taking(20)), database=database, clock=LoopClock())  # type: ignore[arg-type]
    two = Gate(make_action("write_it", handler), database=database, clock=LoopClock())  # type: ignore[arg-type]
    owner = asyncio.create_task(one.call("write_it", id=ONE))
    await asyncio.sleep(0.1)
    assert (await two.call("write_it", id=ONE)).data == "done"
    assert (await owner).ok
    assert handler.runs == 0


@pytest.mark.parametrize("ahead_ms", [-60_000, 4_000])
async def test_a_duplicate_detects_a_live_owner_by_renewals_and_not_by_the_clock(ahead_ms: int) -> None:
    class OtherClock(LoopClock):
        def now_ms(self) -> int:
            return super().now_ms() + ahead_ms

    database, handler = MemoryDatabase(), Counted()
    one = Gate(make_action("write_it", taking(20)), database=database, clock=LoopClock())  # type: ignore[arg-type]
    two = Gate(make_action("write_it", handler), database=database, clock=OtherClock())  # type: ignore[arg-type]
    owner = asyncio.create_task(one.call("write_it", id=ONE))
    await asyncio.sleep(0.1)
    assert (await two.call("write_it", id=ONE)).data == "done"
    assert (await owner).ok
    assert handler.runs == 0


async def test_only_a_long_run_is_renewed() -> None:
    calls = RenewedCalls()
    gate = Gate(make_action("quick", taking(0.5)), make_action("slow", taking(3.5)), clock=LoopClock())  # type: ignore[arg-type]
    gate.executor._deps.journal._store = calls
    await gate.call("quick")
    await asyncio.sleep(5)
    assert calls.renewals == 0
    await gate.call("slow")
    await asyncio.sleep(5)
    assert calls.renewals == 3


async def test_a_call_that_can_be_repeated_is_run_again() -> None:
    crashed = Crashed(idempotent=True)
    assert (await crashed.call(seconds_later=60)).ok
    assert crashed.handler.runs == 1


async def test_an_idempotent_tool_that_writes_is_known_under_either_key() -> None:
    handler = Counted()
    gate = Gate(make_tool("start_voice_session", handler, side_effects=SideEffects.WRITES))
    await gate.call("start_voice_session", id=ONE)
    await gate.call("start_voice_session", id=OTHER)
    assert handler.runs == 1
