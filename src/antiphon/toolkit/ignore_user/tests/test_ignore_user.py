import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.testing import AuditRecorder, Outbox, StillClock, make_context
from antiphon.toolkit.ignore_user import handler
from antiphon.toolkit.ignore_user.handler import execute
from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.context import Messaging
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.messages import Message, Timeout
from antiphon.tools.result import After, Intent, IntentType
from antiphon.tools.spec import Mode

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
NOW_MS = 1_767_268_800_000
FAREWELL = "Let's take a break of a minute."
A_MINUTE = {"duration_seconds": 60, "farewell_message": FAREWELL}


class LostSocket:
    async def send(self, message: Message) -> None:
        raise ToolError(ErrorType.TRANSIENT, "Nobody is connected.", retryable=True)


class BrokenSocket:
    async def send(self, message: Message) -> None:
        raise ConnectionResetError("gone")


class StuckSocket:
    async def send(self, message: Message) -> None:
        await asyncio.sleep(3600)


async def test_the_block_counts_from_now() -> None:
    result = await execute(A_MINUTE, make_context())
    assert result.data == {"until": NOW_MS + 60_000, "duration_seconds": 60}


async def test_a_second_block_ends_later_than_the_first() -> None:
    clock = StillClock()
    first = await execute(A_MINUTE, make_context(clock=clock))
    clock.advance(seconds=20)
    second = await execute(A_MINUTE, make_context(clock=clock))
    assert second.data["until"] == first.data["until"] + 20_000


async def test_parts_of_a_second_are_kept_to_the_millisecond() -> None:
    result = await execute({"duration_seconds": 30.5, "farewell_message": "Enough."}, make_context())
    assert result.data["until"] == NOW_MS + 30_500


async def test_the_page_is_notified() -> None:
    outbox = Outbox()
    await execute(A_MINUTE, make_context(messaging=outbox))
    assert outbox.sent == [Timeout(until=NOW_MS + 60_000, duration_seconds=60, message=FAREWELL)]


async def test_the_farewell_is_spoken() -> None:
    assert (await execute(A_MINUTE, make_context(mode=Mode.VOICE))).spoken == FAREWELL


async def test_a_call_ends_after_the_farewell_and_nothing_else_is_heard() -> None:
    result = await execute(A_MINUTE, make_context(mode=Mode.VOICE))
    assert result.intents == (
        Intent(IntentType.END_VOICE_SESSION, after=After.FAREWELL_SPOKEN),
        Intent(IntentType.SUPPRESS_AUDIO, value=True),
    )


async def test_in_text_there_is_no_call_to_end() -> None:
    assert (await execute(A_MINUTE, make_context(mode=Mode.TEXT))).intents == ()


async def test_the_audit_has_the_block_but_not_the_words() -> None:
    trail = AuditRecorder()
    await execute(A_MINUTE, make_context(audit=trail))
    assert trail.events == [("user_timeout", {"duration_seconds": 60, "until": NOW_MS + 60_000, "client_told": True})]


@pytest.mark.parametrize("socket", [LostSocket(), BrokenSocket(), StuckSocket()])
async def test_a_page_that_cannot_be_notified_is_still_blocked(socket: Messaging) -> None:
    result = await execute(A_MINUTE, make_context(mode=Mode.VOICE, messaging=socket))
    assert result.ok
    assert result.data["until"] == NOW_MS + 60_000
    assert len(result.intents) == 2


async def test_the_audit_records_that_the_page_could_not_be_notified() -> None:
    trail = AuditRecorder()
    await execute(A_MINUTE, make_context(messaging=LostSocket(), audit=trail))
    assert trail.events[0][1]["client_told"] is False


async def test_a_stuck_page_does_not_use_up_the_budget() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    await execute(A_MINUTE, make_context(messaging=StuckSocket()))
    assert (loop.time() - before) * 1000 < SCHEMA["latencyBudgetMs"]


async def test_a_cancelled_call_is_not_mistaken_for_a_lost_page() -> None:
    blocking = asyncio.create_task(execute(A_MINUTE, make_context(messaging=StuckSocket())))
    await asyncio.sleep(0)
    blocking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocking


async def test_an_ended_session_cannot_be_blocked() -> None:
    result = await execute(A_MINUTE, make_context(active=False))
    assert result.error is not None
    assert result.error.type is ErrorType.SESSION_INACTIVE
    assert not result.error.retryable


async def test_an_ended_session_is_left_alone() -> None:
    outbox, trail = Outbox(), AuditRecorder()
    await execute(A_MINUTE, make_context(active=False, messaging=outbox, audit=trail))
    assert (outbox.sent, trail.events) == ([], [])


async def test_the_data_matches_the_output_schema() -> None:
    result = await execute(A_MINUTE, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("args", "accepted"),
    [
        ({"duration_seconds": 30, "farewell_message": "x"}, True),
        ({"duration_seconds": 86_400, "farewell_message": "x" * 200}, True),
        ({"duration_seconds": 29, "farewell_message": "x"}, False),
        ({"duration_seconds": 86_401, "farewell_message": "x"}, False),
        ({"duration_seconds": "60", "farewell_message": "x"}, False),
        ({"duration_seconds": 60, "farewell_message": ""}, False),
        ({"duration_seconds": 60, "farewell_message": "   "}, False),
        ({"duration_seconds": 60, "farewell_message": "x" * 201}, False),
        ({"duration_seconds": 60}, False),
        ({"farewell_message": "x"}, False),
    ],
)
def test_the_bounds_of_the_arguments_are_enforced(args: dict[str, Any], accepted: bool) -> None:
    assert Arguments(SCHEMA["parameters"]).accepts(args) is accepted
