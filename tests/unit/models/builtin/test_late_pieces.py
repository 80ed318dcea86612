"""A request that is completed after its first words were acted on, as the offline assistant answers it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from antiphon.models.base import CallRequested, Completion, Prompt, TextDelta
from antiphon.models.builtin import BuiltinModel
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.talking_tools import Box
from tests.fakes.toolkit import built_in

MODEL = BuiltinModel(Box(built_in()))

Call = tuple[str, Mapping[str, Any]]
QUESTION = {"error": {"type": "CONFIRMATION_REQUIRED", "outcome": "waiting", "preview": "Unlock the front door?"}}
UNKNOWN = {"error": {"type": "TRANSIENT", "outcome": "unknown", "message": "It took too long."}}


def made(
    tool: str, args: Mapping[str, Any], content: Any, spoken: str | None = None, *, ok: bool = True
) -> list[Message]:
    """A call and its result."""
    call = CallMade(f"c-{tool}", tool, args)
    return [AssistantMessage(calls=(call,)), ToolMessage(call.id, tool, content, spoken, ok)]


async def reply(messages: Sequence[Message], first_words: str, *, is_answered: bool) -> tuple[list[Call], str]:
    prompt = Prompt("", messages, (), Mode.VOICE, completion=Completion(first_words, is_answered))
    events = [event async for event in MODEL.reply(prompt)]
    calls = [(event.call.name, event.call.args) for event in events if isinstance(event, CallRequested)]
    return calls, "".join(event.text for event in events if isinstance(event, TextDelta))


async def complete(first: str, done: list[Message], rest: str, *, is_answered: bool) -> tuple[list[Call], str]:
    """What the assistant does when somebody goes on with `rest` after something was done for `first`."""
    whole = UserMessage(f"{first} {rest}")
    messages = [UserMessage(first), *done, AssistantMessage("There."), whole] if is_answered else [whole, *done]
    return await reply(messages, first, is_answered=is_answered)


WHEN = pytest.mark.parametrize("is_answered", [False, True], ids=["continued", "after_the_answer_began"])

ALL_LIGHTS = {"entity": "lights", "action": "off"}
LIGHTS_OFF = made("ha_control", ALL_LIGHTS, {"action": "off", "devices": [{}]}, "I've turned off 4 lights.")
BEDROOM = {"entity": "lights", "area": "bedroom", "action": "off"}


@WHEN
async def test_a_device_stays_as_it_was_set_and_the_whole_is_done_too(is_answered: bool) -> None:
    calls, _ = await complete("turn off the lights", LIGHTS_OFF, "in the bedroom", is_answered=is_answered)
    assert calls == [("ha_control", BEDROOM)]


async def test_it_says_which_devices_were_switched_too_early() -> None:
    then = made("ha_control", BEDROOM, {"action": "off", "devices": [{}]}, "I've turned off the bedside lamp.")
    whole = [UserMessage("turn off the lights in the bedroom"), *LIGHTS_OFF, *then]
    calls, said = await reply(whole, "turn off the lights", is_answered=False)
    assert calls == []
    assert said == "I was too quick. I've turned off 4 lights. I've turned off the bedside lamp."


@WHEN
async def test_what_was_made_warmer_is_not_made_warmer_again(is_answered: bool) -> None:
    warmer = made(
        "ha_control", {"entity": "heating", "action": "up"}, {"action": "up", "devices": [{}]}, "It's a bit warmer."
    )
    calls, said = await complete("make it warmer", warmer, "in the bedroom", is_answered=is_answered)
    assert calls == []
    assert said == "I was too quick. It's a bit warmer. I can't change that any more."


@WHEN
async def test_what_may_have_been_done_is_not_done_again(is_answered: bool) -> None:
    timer = made("set_timer", {"duration": "10 minutes"}, UNKNOWN, "I don't know whether it was set.", ok=False)
    calls, said = await complete("set a timer for ten minutes", timer, "called pasta", is_answered=is_answered)
    assert calls == []
    assert said.startswith("I was too quick. I don't know whether it was set.")


@WHEN
async def test_what_failed_is_done_for_the_whole(is_answered: bool) -> None:
    failed = {"error": {"type": "VALIDATION", "outcome": "nothing was done", "message": "How long?"}}
    timer = made("set_timer", {"duration": "10 minutes"}, failed, ok=False)
    calls, _ = await complete("set a timer for ten minutes", timer, "called pasta", is_answered=is_answered)
    assert calls == [("set_timer", {"duration": "ten minutes", "label": "pasta"})]


@WHEN
async def test_what_waits_for_a_yes_is_asked_about_anew(is_answered: bool) -> None:
    asked = made("ha_control", {"entity": "garage door", "action": "open"}, QUESTION, ok=False)
    calls, _ = await complete("open the blinds", asked, "in the bedroom", is_answered=is_answered)
    assert calls == [("ha_control", {"entity": "blinds", "area": "bedroom", "action": "open"})]


@WHEN
async def test_what_was_only_looked_up_is_looked_up_for_the_whole(is_answered: bool) -> None:
    noon = made("get_current_time", {}, {}, "It's noon.")
    calls, _ = await complete("what time is it", noon, "in Tokyo", is_answered=is_answered)
    assert calls == [("get_current_time", {"timezone": "Tokyo"})]


async def test_the_answer_is_the_result_for_the_whole() -> None:
    whole = [
        UserMessage("what time is it in Tokyo"),
        *made("get_current_time", {}, {}, "It's noon."),
        *made("get_current_time", {"timezone": "Tokyo"}, {}, "It's nine in Tokyo."),
    ]
    assert await reply(whole, "what time is it", is_answered=False) == ([], "It's nine in Tokyo.")


@WHEN
async def test_late_words_that_change_nothing_let_nothing_run(is_answered: bool) -> None:
    timer = made("set_timer", {"duration": "10 minutes"}, {"id": "r1", "kind": "timer"}, "10 minutes, starting now.")
    calls, said = await complete("set a timer for ten minutes", timer, "please", is_answered=is_answered)
    assert calls == []
    assert said == "10 minutes, starting now."


async def test_what_is_wanted_anyway_is_told_with_the_rest() -> None:
    milk, eggs = (
        made("list_add", {"item": item, "list": "shopping"}, {"list": "shopping", "added": [item]}, f"{item} is on it.")
        for item in ("milk", "eggs")
    )
    whole = [UserMessage("add milk to my shopping list and eggs"), *milk, *eggs]
    first = "add milk to my shopping list"
    assert await reply(whole, first, is_answered=False) == ([], "milk is on it. eggs is on it.")


async def test_items_that_the_whole_asks_for_are_not_taken_off_the_list() -> None:
    milk = made("list_add", {"item": "milk"}, {"list": "shopping", "added": ["milk"], "duplicates": []})
    messages = [UserMessage("add milk and eggs to the shopping list"), *milk]
    calls, _ = await reply(messages, "add milk", is_answered=False)
    assert calls == [("list_add", {"item": "milk and eggs", "list": "shopping"})]


async def test_an_item_that_turns_out_to_be_another_one_is_taken_off_the_list() -> None:
    milk = made("list_add", {"item": "milk", "list": "shopping"}, {"list": "shopping", "added": ["milk"]})
    messages = [UserMessage("add milk chocolate to my shopping list"), *milk]
    calls, _ = await reply(messages, "add milk to my shopping list", is_answered=False)
    assert calls == [
        ("list_remove", {"item": "milk", "list": "shopping"}),
        ("list_add", {"item": "milk chocolate", "list": "shopping"}),
    ]


async def test_without_a_completion_the_results_of_other_calls_are_told() -> None:
    """A language model has called the tool in its own words, and was then lost."""
    timer = made("set_timer", {"duration": "600 s"}, {"id": "r1", "kind": "timer"}, "10 minutes, starting now.")
    prompt = Prompt("", [UserMessage("set a timer for ten minutes"), *timer], (), Mode.VOICE)
    assert await anext(MODEL.reply(prompt)) == TextDelta("10 minutes, starting now.")


def test_a_language_model_is_told_that_the_user_had_not_finished() -> None:
    messages = (UserMessage("set a timer"), AssistantMessage("For how long?"), UserMessage("set a timer called tea"))
    prompt = Prompt("", messages, (), Mode.VOICE)
    assert list(prompt.told_messages) == list(messages)
    told = Prompt("", messages, (), Mode.VOICE, completion=Completion("set a timer", True)).told_messages
    assert told[:2] == list(messages[:2])
    assert isinstance(told[2], UserMessage)
    assert told[2].text.startswith("set a timer called tea\n\n(I had not finished")
