"""The judge is judged: what differs in meaning is told apart, and what differs in words only is not."""

from typing import Any

import pytest

from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import ToolResult, fail, ok
from tests.understanding.judge import Expected, Verdict, is_wrong_action, verdict_on
from tests.understanding.meaning import has_number, misses
from tests.understanding.world import Conversation, Ran, Turn

TIMER = {"remaining_s": 600, "due": "2026-03-04T10:25:00+00:00", "message": "pasta", "repeat": None}
ADDED = {"list": "shopping", "added": ("dozen eggs", "Bread"), "duplicates": ()}


def ran(name: str, args: dict[str, Any], result: ToolResult) -> Ran:
    return Ran(ToolCall(None, name, args), result)


@pytest.mark.parametrize(
    ("want", "name", "args", "data", "missed"),
    [
        ({"duration": "10 minutes"}, "set_timer", {"duration": "600 seconds"}, TIMER, []),
        ({"duration": "10 minutes", "label": "pasta"}, "set_timer", {}, TIMER, []),
        ({"duration": "12 minutes"}, "set_timer", {}, TIMER, ["duration"]),
        ({"due": "2026-03-04T10:25"}, "set_timer", {}, TIMER, []),
        ({"message": "call tom"}, "set_reminder", {}, {"message": "to call Tom"}, []),
        ({"message": "call tom"}, "set_reminder", {}, {"message": "call Tom, no"}, ["message"]),
        ({"message": "call tom"}, "set_reminder", {}, {"message": "call Tom after lunch at the office"}, ["message"]),
        ({"item": ["bread", "a dozen eggs"]}, "list_add", {}, ADDED, []),
        ({"item": ["bread"]}, "list_add", {}, ADDED, ["item"]),
        ({"list": "shopping"}, "list_add", {}, ADDED, []),
        ({"location": "paris"}, "get_weather", {"location": "Paris, France"}, {}, []),
        ({"location": "paris"}, "get_weather", {"location": "Paris and Rome"}, {}, ["location"]),
        ({"timezone": "new york"}, "get_current_time", {"timezone": "America/New_York"}, {}, []),
        ({"day": "2026-03-05"}, "get_weather", {"day": "tomorrow"}, {}, []),
        ({"day": "2026-03-05"}, "get_weather", {"day": "friday"}, {}, ["day"]),
        ({"entity": "kitchen light"}, "ha_control", {"entity": "lights", "area": "kitchen"}, {}, []),
        ({"entity": "hallway light"}, "ha_control", {"entity": "lights", "area": "kitchen"}, {}, ["entity"]),
        ({"absent": ["timezone"]}, "get_current_time", {"timezone": "Rome"}, {}, ["absent"]),
        ({"result": 12}, "calculate", {"expression": "15% of 80"}, {"result": 12.0}, []),
        ({"result": 12}, "calculate", {"expression": "12 percent"}, {"result": 0.12}, ["result"]),
    ],
)
def test_a_call_is_compared_by_its_meaning(
    want: dict[str, Any], name: str, args: dict[str, Any], data: dict[str, Any], missed: list[str]
) -> None:
    assert misses(want, ran(name, args, ok(data)), reply="") == missed


def test_a_call_that_failed_is_not_what_was_meant() -> None:
    assert misses({}, ran("open_url", {"url": "a b"}, fail(ErrorType.VALIDATION, "There is a space in it.")), "")


@pytest.mark.parametrize(
    ("reply", "has"), [("It's five hours.", True), ("That's 5.", True), ("15 of 25", False), ("5,000", False)]
)
def test_a_number_is_found_in_digits_and_in_words(reply: str, has: bool) -> None:
    assert has_number(5, [reply]) is has


TEN_MINUTES = Expected(calls=((("set_timer",), {"duration": "10 minutes"}),))
RIGHT_CALL = ran("set_timer", {"duration": "ten minutes"}, ok(TIMER))
LATE_CALL = ran("set_timer", {"duration": "an hour"}, ok({**TIMER, "remaining_s": 3600}))
READING = ran("list_reminders", {}, ok({}))


@pytest.mark.parametrize(
    ("expected", "calls", "reply", "verdict", "wrong_action"),
    [
        (TEN_MINUTES, [RIGHT_CALL], "All right.", Verdict.RIGHT, False),
        (TEN_MINUTES, [LATE_CALL], "All right.", Verdict.WRONG_ARGUMENTS, True),
        (TEN_MINUTES, [RIGHT_CALL, LATE_CALL], "All right.", Verdict.WRONG_TOOL, True),
        (TEN_MINUTES, [READING], "There are none.", Verdict.WRONG_TOOL, False),
        (TEN_MINUTES, [], "I don't know how to do that.", Verdict.NOTHING, False),
        (TEN_MINUTES, [], "Did you mean “set a timer”?", Verdict.ASKED, False),
        (TEN_MINUTES, [RIGHT_CALL], "", Verdict.NOTHING, False),
        (Expected(), [], "Nice.", Verdict.RIGHT, False),
        (Expected(), [READING], "There are none.", Verdict.WRONG_TOOL, False),
        (Expected(may_read=True), [READING], "There are none.", Verdict.RIGHT, False),
        (Expected(may_read=True), [RIGHT_CALL], "All right.", Verdict.WRONG_TOOL, True),
        (Expected(answer="welcome"), [], "I don't know that. You could say “you're welcome”.", Verdict.NOTHING, False),
    ],
)
def test_a_turn_is_judged_by_what_was_done_and_said(
    expected: Expected, calls: list[Ran], reply: str, verdict: Verdict, wrong_action: bool
) -> None:
    turn = Turn("…", reply, tuple(calls))
    assert (verdict_on(expected, turn)[0], is_wrong_action(expected, turn)) == (verdict, wrong_action)


@pytest.mark.real_time
async def test_a_question_of_the_gate_is_answered_in_the_next_turn() -> None:
    async with Conversation() as conversation:
        asked = await conversation.say("clear my shopping list")
        assert [each.did_something for each in asked.ran] == [False]
        approved = await conversation.say("yes")
        assert [(each.name, each.did_something) for each in approved.ran] == [("list_remove", True)]
