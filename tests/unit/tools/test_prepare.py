"""Preparation: a call is settled before the person is asked, and runs as it was settled."""

import asyncio
from typing import Any

import pytest

from antiphon.storage.base import StoreUnavailable
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.result import ConfirmationRequest, Prepared, ToolResult, fail, ok
from tests.fakes.gates import Counted, Gate, make_action

BOOK: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["day"],
    "properties": {"day": {"type": "string"}, "seats": {"type": "integer", "default": 2}},
}


async def settle(args: Args, context: Context) -> Prepared:
    day = f"{context.clock.now(context.session.zone):%Y-%m-%d} ({args['day']})"
    return Prepared({**args, "day": day}, f"Book {args['seats']} seats on {day}?")


class Booking:
    def __init__(self, prepare: Any = settle, **fields: Any) -> None:
        self.handler = Counted()
        tool = make_action("book", self.handler, parameters=BOOK, requires_confirmation=True, prepare=prepare, **fields)
        self.gate = Gate(tool)

    async def ask(self, day: str = "today", **call: Any) -> ToolResult:
        return await self.gate.call("book", {"day": day}, **call)

    def shown(self) -> ConfirmationRequest:
        shown = self.gate.outbox.sent[-1]
        assert isinstance(shown, ConfirmationRequest)
        return shown

    async def approve(self) -> ToolResult:
        return await self.gate.executor.resolve(self.shown().confirmation_token, True, self.gate.session)


async def test_the_person_is_shown_the_settled_call() -> None:
    booking = Booking()
    result = await booking.ask()
    assert result.error is not None
    assert result.error.type is ErrorType.CONFIRMATION_REQUIRED
    assert booking.shown().preview == "Book 2 seats on 2026-01-01 (today)?"
    assert booking.shown().args == {"day": "2026-01-01 (today)", "seats": 2}


async def test_an_approved_call_runs_as_it_was_settled_even_on_another_day() -> None:
    booking = Booking()
    booking.gate.clock.at_ms += 12 * 3600 * 1000 - 1000
    await booking.ask()
    booking.gate.clock.advance(seconds=60)
    assert f"{booking.gate.clock.now(booking.gate.session.zone):%d}" == "02"
    assert (await booking.approve()).ok
    assert booking.handler.seen == [{"day": "2026-01-01 (today)", "seats": 2}]


async def test_a_second_delivery_of_the_call_is_recognised_by_its_original_arguments() -> None:
    booking = Booking()
    await booking.ask()
    first = await booking.approve()
    again = await booking.ask()
    assert again.meta is not None
    assert (first.ok, again.ok, again.meta.cache_hit, booking.handler.runs) == (True, True, True, 1)


async def test_a_declined_call_is_not_asked_about_again_in_the_turn() -> None:
    booking = Booking()
    await booking.ask()
    await booking.gate.executor.resolve(booking.shown().confirmation_token, False, booking.gate.session)
    count = len(booking.gate.outbox.sent)
    again = await booking.ask()
    assert again.error is not None
    assert again.error.type is ErrorType.PERMANENT
    assert len(booking.gate.outbox.sent) == count


async def test_a_question_that_is_shown_again_has_the_settled_arguments() -> None:
    booking = Booking()
    await booking.ask()
    first = booking.shown()
    await booking.gate.executor.confirm_again(booking.gate.session)
    again = booking.shown()
    assert again.confirmation_token != first.confirmation_token
    assert (again.args, again.preview) == (first.args, first.preview)


async def refuse(args: Args, context: Context) -> ToolResult:
    return fail(ErrorType.CONFLICT, "There are no seats left.")


async def raise_expected(args: Args, context: Context) -> Prepared:
    raise ToolError(ErrorType.AUTH, "The theatre doesn't let me in.")


async def raise_unexpected(args: Args, context: Context) -> Prepared:
    raise RuntimeError("broken")


async def miss_the_store(args: Args, context: Context) -> Prepared:
    raise StoreUnavailable("The disk is full.")


async def return_ok(args: Args, context: Context) -> ToolResult:
    return ok({})


async def return_nothing(args: Args, context: Context) -> None:
    return None


async def break_the_schema(args: Args, context: Context) -> Prepared:
    return Prepared({"day": 7}, "Book?")


async def hang(args: Args, context: Context) -> Prepared:
    await asyncio.sleep(3600)
    return Prepared({}, "")


@pytest.mark.parametrize(
    ("prepare", "type"),
    [
        (refuse, ErrorType.CONFLICT),
        (raise_expected, ErrorType.AUTH),
        (raise_unexpected, ErrorType.INTERNAL),
        (miss_the_store, ErrorType.TRANSIENT),
        (return_ok, ErrorType.INTERNAL),
        (return_nothing, ErrorType.INTERNAL),
        (break_the_schema, ErrorType.INTERNAL),
        (hang, ErrorType.TRANSIENT),
    ],
)
async def test_a_call_that_cannot_be_prepared_is_not_asked_about(prepare: Any, type: ErrorType) -> None:
    booking = Booking(prepare)
    result = await booking.ask()
    assert result.error is not None
    assert (result.error.type, result.error.partial_side_effects) == (type, False)
    assert (booking.gate.outbox.sent, booking.handler.runs) == ([], 0)


async def test_nobody_waits_longer_for_a_preparation_than_for_a_look_up() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await Booking(hang, latency_budget_ms=500).ask()
    assert loop.time() - began == pytest.approx(1.0, abs=0.01)
