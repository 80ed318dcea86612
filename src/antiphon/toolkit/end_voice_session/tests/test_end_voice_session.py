import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.authoring.testing import Outbox, make_context
from antiphon.toolkit.end_voice_session import handler
from antiphon.toolkit.end_voice_session.handler import execute
from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.context import Context
from antiphon.tools.result import After, Intent, IntentType
from antiphon.tools.spec import Mode

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
GOODBYE = {"reason": "user_request", "final_message": "Goodbye, talk to you soon."}


def in_a_call(*, active: bool = True) -> Context:
    return make_context(mode=Mode.VOICE, active=active)


async def test_the_call_ends_after_the_final_message() -> None:
    result = await execute(GOODBYE, in_a_call())
    assert result.intents == (Intent(IntentType.END_VOICE_SESSION, after=After.CURRENT_TURN),)


async def test_without_a_final_message_the_call_ends_at_once() -> None:
    result = await execute({"reason": "user_request"}, in_a_call())
    assert result.intents == (Intent(IntentType.END_VOICE_SESSION, after=After.IMMEDIATE),)


async def test_a_blank_final_message_counts_as_missing() -> None:
    result = await execute({"reason": "user_request", "final_message": "      "}, in_a_call())
    assert result.intents == (Intent(IntentType.END_VOICE_SESSION, after=After.IMMEDIATE),)


async def test_the_final_message_is_spoken() -> None:
    assert (await execute(GOODBYE, in_a_call())).spoken == "Goodbye, talk to you soon."


async def test_without_a_final_message_nothing_is_spoken() -> None:
    assert (await execute({"reason": "task_complete"}, in_a_call())).spoken is None


async def test_the_data_says_how_the_call_ended() -> None:
    result = await execute(GOODBYE, in_a_call())
    assert result.data == {
        "ended": True,
        "reason": "user_request",
        "final_message": "Goodbye, talk to you soon.",
        "already_ended": False,
    }


async def test_ending_an_ended_call_is_a_success_that_changes_nothing() -> None:
    result = await execute(GOODBYE, in_a_call(active=False))
    assert result.ok
    assert result.intents == ()
    assert result.data["already_ended"] is True


async def test_nothing_is_spoken_after_the_end() -> None:
    assert (await execute(GOODBYE, in_a_call(active=False))).spoken is None


async def test_the_page_is_notified_by_the_session_and_not_by_the_tool() -> None:
    outbox = Outbox()
    await execute(GOODBYE, make_context(mode=Mode.VOICE, messaging=outbox))
    assert outbox.sent == []


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("args", [GOODBYE, {"reason": "switch_to_text"}])
async def test_the_data_matches_the_output_schema(args: dict[str, Any], active: bool) -> None:
    result = await execute(args, in_a_call(active=active))
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    "args",
    [
        {"reason": "bored"},
        {"reason": "user_request", "final_message": "Bye."},
        {"reason": "user_request", "final_message": "x" * 201},
        {"reason": "user_request", "after": "immediate"},
    ],
)
def test_arguments_out_of_bounds_are_refused(args: dict[str, Any]) -> None:
    assert not Arguments(SCHEMA["parameters"]).accepts(args)
