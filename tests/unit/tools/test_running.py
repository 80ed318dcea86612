"""The handler's run: deadlines, the retry, what an interruption does, and every way it can end."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.executor import CLOSE_S
from antiphon.tools.result import After, Citation, Flyout, FlyoutType, Intent, IntentType, ToolResult, fail, ok
from antiphon.tools.spec import Capability, Mode, SideEffects
from tests.fakes.gates import Counted, Gate, make_action, make_tool


def taking(seconds: float) -> Counted:
    async def answer(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(seconds)
        return ok("done")

    return Counted(answer)


def failing(*answers: Any) -> Counted:
    left = list(answers)

    async def answer(args: Args, context: Context) -> Any:
        next_answer = left.pop(0)
        if isinstance(next_answer, BaseException):
            raise next_answer
        return next_answer

    return Counted(answer)


TRY_AGAIN = fail(ErrorType.TRANSIENT, "Try again.", retryable=True)


async def error_of(gate: Gate, name: str) -> Any:
    result = await gate.call(name)
    assert result.error is not None
    return result.error


@pytest.mark.parametrize(
    ("mode", "seconds", "in_time"), [("voice", 0.6, False), ("text", 0.6, True), ("text", 1.1, False)]
)
async def test_a_read_is_cancelled_at_its_budget_in_voice_and_at_twice_that_in_text(
    mode: str, seconds: float, in_time: bool
) -> None:
    gate = Gate(make_tool("slow", taking(seconds), latency_budget_ms=500))
    gate.session.mode = Mode(mode)
    result = await gate.call("slow")
    assert result.ok is in_time
    if not in_time:
        assert result.error is not None
        assert result.error.type is ErrorType.TRANSIENT
        assert not result.error.partial_side_effects


async def test_a_failure_is_phrased_for_people_without_the_tool_name() -> None:
    crash = failing(RuntimeError("boom"))
    gate = Gate(make_tool("slow", taking(9), latency_budget_ms=500), make_tool("broken", crash))
    for name in ("slow", "broken"):
        result = await gate.call(name)
        assert result.error is not None
        assert result.spoken is not None
        assert name in result.error.message
        assert name not in result.spoken


async def test_an_action_is_not_cancelled_at_its_budget() -> None:
    gate = Gate(make_action("slow", taking(29), latency_budget_ms=500))
    assert (await gate.call("slow")).ok


async def test_a_writing_utility_is_not_cancelled_either() -> None:
    gate = Gate(make_tool("slow", taking(5), side_effects=SideEffects.WRITES))
    assert (await gate.call("slow")).ok


async def test_an_action_is_stopped_at_its_time_limit_and_may_be_half_done() -> None:
    gate = Gate(make_action("stuck", taking(3600)))
    error = await error_of(gate, "stuck")
    assert error.type is ErrorType.TRANSIENT
    assert error.partial_side_effects
    assert not error.retryable


async def test_text_retries_a_transient_failure_once() -> None:
    handler = failing(TRY_AGAIN, ok("done"))
    gate = Gate(make_tool("flaky", handler))
    assert (await gate.call("flaky")).data == "done"
    assert handler.runs == 2


async def test_a_second_transient_failure_is_reported() -> None:
    handler = failing(TRY_AGAIN, TRY_AGAIN, ok("too late"))
    assert (await error_of(Gate(make_tool("flaky", handler)), "flaky")).type is ErrorType.TRANSIENT
    assert handler.runs == 2


async def test_voice_never_retries() -> None:
    handler = failing(TRY_AGAIN)
    gate = Gate(make_tool("flaky", handler))
    gate.session.mode = Mode.VOICE
    await gate.call("flaky")
    assert handler.runs == 1


async def test_a_call_that_must_not_be_repeated_is_not_retried() -> None:
    handler = failing(TRY_AGAIN)
    await Gate(make_action("flaky", handler)).call("flaky")
    assert handler.runs == 1


async def test_a_failed_read_can_be_tried_again_in_the_same_turn() -> None:
    handler = failing(TRY_AGAIN, TRY_AGAIN, ok("done"))
    gate = Gate(make_tool("flaky", handler))
    await gate.call("flaky")
    assert (await gate.call("flaky")).data == "done"


async def test_an_expected_error_may_be_raised_from_anywhere() -> None:
    error = ToolError(ErrorType.NOT_FOUND, "No such city.", suggestion="Spell it.", details={"city": "X"})
    told = await error_of(Gate(make_tool("raises", failing(error))), "raises")
    assert (told.type, told.message, told.suggestion, told.details) == (
        ErrorType.NOT_FOUND,
        "No such city.",
        "Spell it.",
        {"city": "X"},
    )


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("password=hunter2"), TimeoutError("hunter2"), asyncio.CancelledError("hunter2"), {"ok": True}, None],
)
async def test_an_unexpected_error_is_internal_and_reveals_nothing(answer: Any) -> None:
    told = await error_of(Gate(make_tool("broken", failing(answer))), "broken")
    assert told.type is ErrorType.INTERNAL
    assert told.partial_side_effects
    assert "hunter2" not in repr(told)


@pytest.mark.parametrize("data", [object(), {"a": {1, 2}.__iter__()}])
async def test_data_that_is_not_json_is_an_internal_error(data: Any) -> None:
    assert (await error_of(Gate(make_tool("odd", failing(ok(data)))), "odd")).type is ErrorType.INTERNAL


async def test_lone_surrogates_are_replaced_in_everything_a_handler_returns() -> None:
    half = "\ud83d"
    given = ok({half: [half]}, spoken=half, flyout=Flyout(FlyoutType.CODE, half), citations=[Citation(half, half)])
    result = await Gate(make_tool("odd", failing(given))).call("odd")
    assert (result.data, result.spoken) == ({"\ufffd": ["\ufffd"]}, "\ufffd")
    assert result.flyout == Flyout(FlyoutType.CODE, "\ufffd")
    assert result.citations == (Citation("\ufffd", "\ufffd"),)


async def test_lone_surrogates_are_replaced_in_a_failure() -> None:
    error = await error_of(Gate(make_tool("odd", failing(ToolError(ErrorType.TRANSIENT, "no \ud83d")))), "odd")
    assert error.message == "no \ufffd"


async def test_an_interruption_cancels_a_read() -> None:
    gate = Gate(make_tool("slow", taking(0.4)))
    call = asyncio.create_task(gate.call("slow"))
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert gate.session.unheard == []


async def test_an_interrupted_action_finishes_and_is_reported_in_the_next_turn() -> None:
    handler = taking(2)
    gate = Gate(make_action("book", handler))
    call = asyncio.create_task(gate.call("book", id="call_0123456789"))
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await gate.executor.aclose()
    ((unheard, result),) = gate.session.unheard
    assert unheard.name == "book"
    assert result.data == "done"
    assert (await gate.call("book", id="call_0123456789")).data == "done"
    assert handler.runs == 1


async def test_closing_waits_for_an_action_for_half_a_minute_and_then_cancels_it() -> None:
    slow, slower = taking(29), taking(170)
    gate = Gate(make_action("book", slow, timeout_ms=180_000), make_action("draw", slower, timeout_ms=180_000))
    calls = [asyncio.create_task(gate.call(name, id=f"{name}_0123456789")) for name in ("book", "draw")]
    await asyncio.sleep(0.1)
    began_s = asyncio.get_running_loop().time()
    with capture_logs() as lines:
        await gate.executor.aclose()
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(CLOSE_S, abs=0.1)
    booked, drawn = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(booked, ToolResult)
    assert booked.data == "done"
    assert isinstance(drawn, asyncio.CancelledError)
    assert [each["count"] for each in lines if each["event"] == "actions_cancelled"] == [1]


async def test_the_outcome_of_an_action_that_closing_has_cancelled_is_unknown() -> None:
    handler = taking(170)
    gate = Gate(make_action("draw", handler, timeout_ms=180_000))
    call = asyncio.create_task(gate.call("draw", id="call_0123456789"))
    await asyncio.sleep(0.1)
    await gate.executor.aclose()
    await asyncio.gather(call, return_exceptions=True)
    again = await gate.call("draw", id="call_0123456789")
    assert again.error is not None
    assert again.error.details == {"outcome": "unknown"}
    assert handler.runs == 1


async def test_intents_of_a_success_are_applied_once() -> None:
    intent = Intent(IntentType.END_VOICE_SESSION, after=After.CURRENT_TURN)
    gate = Gate(make_action("end_it", failing(ok(intents=[intent]))))
    session = gate.new_session("voice", mode=Mode.VOICE)
    first = await gate.call("end_it", id="call_0123456789", session=session)
    assert first.intents == (intent,)
    assert session.state.ending is After.CURRENT_TURN
    session.state.ending = None
    again = await gate.call("end_it", id="call_0123456789", session=session)
    assert again.meta is not None
    assert again.meta.cache_hit
    assert again.intents == ()
    assert session.state.ending is None


async def test_an_unknown_intent_is_refused_and_the_result_stands() -> None:
    gate = Gate(make_tool("odd", failing(ok("fine", intents=[Intent("BECOME_ROOT")]))))
    result = await gate.call("odd")
    assert result.data == "fine"
    assert result.intents == ()


async def test_the_model_sees_data_or_the_error_and_nothing_else() -> None:
    gate = Gate(
        make_tool("good", failing(ok({"a": 1}, spoken="One."))), make_tool("bad", failing(TRY_AGAIN, TRY_AGAIN))
    )
    assert (await gate.call("good")).for_model() == {"a": 1}
    assert (await gate.call("bad")).for_model() == {
        "error": {"type": "TRANSIENT", "message": "Try again.", "outcome": "nothing_done", "retryable": True}
    }


async def test_a_capability_missing_from_the_schema_is_unavailable() -> None:
    async def sneak(args: Args, context: Context) -> ToolResult:
        await context.call_tool("read_it", {})
        return ok()

    gate = Gate(make_tool("sneaky", sneak), make_tool("read_it"))
    assert (await error_of(gate, "sneaky")).type is ErrorType.INTERNAL


async def test_tools_call_tools_through_the_same_gate_on_the_same_budget() -> None:
    async def twice(args: Args, context: Context) -> ToolResult:
        one = await context.call_tool("read_it", {"text": "a"})
        two = await context.call_tool("read_it", {"text": "a"})
        return ok([one.data, two.data])

    inner = Counted()
    gate = Gate(make_tool("both", twice, uses=(Capability.CALL_TOOL,)), make_tool("read_it", inner))
    assert (await gate.call("both")).data == [{"run": 1}, {"run": 2}]
    assert gate.session.ledger.calls == 3
    assert [line.tool for line in await gate.audit()] == ["read_it", "read_it", "both"]


async def test_tools_call_tools_three_deep_and_no_deeper() -> None:
    depths: list[int] = []

    async def deeper(args: Args, context: Context) -> ToolResult:
        depths.append(len(depths))
        inner = await context.call_tool("deeper", {"text": str(len(depths))})
        return ok(inner.for_model())

    gate = Gate(make_tool("deeper", deeper, uses=(Capability.CALL_TOOL,)))
    result = await gate.call("deeper")
    assert len(depths) == 3
    assert "3 levels deep" in str(result.data)


async def test_a_handlers_own_audit_lines_are_kept_even_if_they_are_not_json() -> None:
    async def talk(args: Args, context: Context) -> ToolResult:
        context.audit.log("tea_made", cups=2)
        context.audit.log("oddity", thing=object())
        return ok()

    lines = await Gate(make_tool("talks", talk)).audit_of("talks")
    assert [(line.event, line.outcome) for line in lines] == [("tea_made", "event"), ("oddity", "event"), (None, "ok")]
    assert lines[0].data == {"cups": 2}
