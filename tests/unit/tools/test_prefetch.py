"""Prefetching the results of probable calls, without visible effects."""

from typing import Any

import pytest

from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.messages import Notice
from antiphon.tools.result import ToolResult, fail, ok
from antiphon.tools.session import PREFETCH_TTL_S
from antiphon.tools.spec import Capability, Category, Mode, RateLimit, SideEffects
from tests.fakes.gates import Counted, Gate, make_action, make_retrieval, make_tool

TEXT = {"text": "a"}


async def prefetch(gate: Gate, name: str = "read_it", args: Any = TEXT) -> ToolResult | None:
    return await gate.executor.prefetch(ToolCall(None, name, args), gate.session)


async def test_the_call_returns_the_prefetched_result_and_its_handler_runs_once() -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    prefetched = await prefetch(gate)
    gate.next_turn()
    result = await gate.call("read_it", TEXT)
    assert prefetched is not None
    assert (prefetched.data, result.data, handler.runs) == ({"run": 1}, {"run": 1}, 1)


async def test_a_prefetched_result_is_used_for_one_call() -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    await prefetch(gate)
    results = [(await gate.call("read_it", TEXT, id=f"call_000000{number}")).data for number in range(2)]
    assert results == [{"run": 1}, {"run": 2}]


async def test_other_arguments_are_another_call() -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    await prefetch(gate)
    await gate.call("read_it", {"text": "b"})
    assert handler.seen == [TEXT, {"text": "b"}]


async def test_an_old_prefetched_result_is_not_used() -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    await prefetch(gate)
    gate.clock.advance(seconds=PREFETCH_TTL_S + 0.1)
    assert (await gate.call("read_it", TEXT)).data == {"run": 2}
    assert gate.session.prefetched == {}


async def test_a_prefetch_is_not_counted_stored_or_audited() -> None:
    gate = Gate(make_tool("read_it"))
    await prefetch(gate)
    assert gate.session.ledger.calls == 0
    assert await gate.database.calls.find("s1", None, None) is None
    assert await gate.audit() == []


async def test_the_call_itself_is_counted_and_audited_like_any_other() -> None:
    gate = Gate(make_tool("read_it"))
    await prefetch(gate)
    await gate.call("read_it", TEXT)
    assert gate.session.ledger.calls == 1
    assert [line.outcome for line in await gate.audit()] == ["ok"]


async def test_a_prefetching_handler_can_reach_neither_the_client_nor_the_audit() -> None:
    async def tell(args: Args, context: Context) -> ToolResult:
        context.audit.log("tried")
        await context.messaging.send(Notice("Working on it."))
        return ok("told")

    gate = Gate(make_tool("read_it", Counted(tell)))
    assert await prefetch(gate) is None
    assert gate.outbox.sent == []
    assert await gate.audit() == []


@pytest.mark.parametrize(
    "tool",
    [
        make_action("read_it"),
        make_action("read_it", idempotent=True),
        make_retrieval("read_it"),
        make_tool("read_it", category=Category.ACTION),
        make_tool("read_it", side_effects=SideEffects.READ_ONLY),
        make_tool("read_it", idempotent=False),
        make_tool("read_it", requires_confirmation=True),
        make_tool("read_it", needs_confirmation=lambda args, untrusted: True),
        make_tool("read_it", rate_limit=RateLimit(calls=1, window_s=60)),
        make_tool("read_it", requires_auth=True),
        make_tool("read_it", allowed_modes=(Mode.TEXT,)),
        make_tool("read_it", availability="session.turn > 0"),
        make_tool("read_it", uses=(Capability.CALL_TOOL,)),
    ],
    ids=lambda tool: f"{tool.spec.category} {tool.spec.side_effects}",
)
async def test_tools_with_effects_limits_or_conditions_are_not_prefetched(tool: Any) -> None:
    gate = Gate(tool)
    gate.session.mode = Mode.VOICE
    assert await prefetch(gate) is None
    assert tool.execute.runs == 0


@pytest.mark.parametrize("args", [{"unknown": 1}, {"text": 5}, "text", None, {"text": float("nan")}, {"text": b"x"}])
async def test_bad_arguments_are_left_to_the_call(args: Any) -> None:
    handler = Counted()
    gate = Gate(make_tool("read_it", handler))
    assert await prefetch(gate, args=args) is None
    assert handler.runs == 0


async def test_an_unknown_tool_is_left_to_the_call() -> None:
    assert await prefetch(Gate(make_tool("read_it")), "write_it") is None


async def test_a_failed_prefetch_does_not_decide_the_call() -> None:
    async def refuse(args: Args, context: Context) -> ToolResult:
        return fail(ErrorType.TRANSIENT, "Not now.", retryable=True)

    handler = Counted(refuse)
    gate = Gate(make_tool("read_it", handler))
    assert await prefetch(gate) is None
    await gate.call("read_it", TEXT)
    assert handler.runs == 3  # once ahead, and twice in earnest: text mode tries again
