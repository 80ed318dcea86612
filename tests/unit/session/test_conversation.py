"""A text turn: words in, tools through the gate, words out."""

import asyncio
from typing import Any

import pytest

from antiphon.session.conversation import MAX_STEPS, Answered, Called, Conversation, Returned, TurnEvent
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.gates import Counted, Gate, make_action, make_tool
from tests.fakes.scripted import ScriptedModel


class Talk:
    def __init__(self, script: list[Any], *tools: Tool) -> None:
        self.gate = Gate(*tools)
        self.gate.session.turn = 0
        self.model = ScriptedModel(script)
        self.conversation = Conversation(self.model, self.gate.executor, self.gate.session)

    async def say(self, text: str) -> list[TurnEvent]:
        return [event async for event in self.conversation.say(text)]


def answer_of(events: list[TurnEvent]) -> str:
    last = events[-1]
    assert isinstance(last, Answered)
    return last.text.strip()


async def test_words_come_back_as_they_are_made() -> None:
    talk = Talk(["Hello there."])
    assert answer_of(await talk.say("hi")) == "Hello there."
    assert talk.conversation.messages == [UserMessage("hi"), AssistantMessage("Hello there. ")]


async def test_a_call_runs_through_the_gate_and_its_result_goes_back_to_the_model() -> None:
    talk = Talk([[ToolCall("call_0123456789", "read_it", {})], "It is one."], make_tool("read_it"))
    events = await talk.say("read it")
    assert [type(event) for event in events[:2]] == [Called, Returned]
    assert answer_of(events) == "It is one."
    assert talk.model.prompts[1].messages[-1] == ToolMessage("call_0123456789", "read_it", {"run": 1})


async def test_the_model_is_given_the_prompt_and_the_tools_of_the_mode() -> None:
    talk = Talk(["Hello."], make_tool("read_it"))
    await talk.say("hi")
    assert "**read_it** (utility): Use read_it." in talk.model.prompts[0].system
    assert "Available tools (v1.0.00000001)" in talk.model.prompts[0].system


async def test_a_call_without_an_id_is_joined_to_its_result_all_the_same() -> None:
    talk = Talk([[ToolCall(None, "read_it", {})], "Done."], make_tool("read_it"))
    await talk.say("read it")
    _, made, told = talk.model.prompts[1].messages
    assert isinstance(made, AssistantMessage)
    assert isinstance(told, ToolMessage)
    assert made.calls[0].id == told.call_id


async def test_equal_calls_of_one_message_are_two_calls() -> None:
    handler = Counted()
    same = ToolCall(None, "write_it", {"text": "a"})
    await Talk([[same, same], "Done."], make_action("write_it", handler)).say("twice")
    assert handler.runs == 2


async def test_a_model_that_only_calls_is_ended() -> None:
    calls = [[ToolCall(None, "read_it", {"text": str(n)})] for n in range(50)]
    talk = Talk(calls, make_tool("read_it"))
    assert answer_of(await talk.say("go")) == ""
    assert len(talk.model.prompts) == MAX_STEPS


async def test_a_yes_runs_what_was_asked_before_the_model_sees_it() -> None:
    handler = Counted()
    book = make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")
    talk = Talk([[ToolCall(None, "book", {})], "Shall I?", "It is booked."], book)
    await talk.say("book it")
    assert handler.runs == 0
    events = await talk.say("yes please")
    assert isinstance(events[0], Returned)
    assert handler.runs == 1
    assert answer_of(events) == "It is booked."
    told = talk.model.prompts[-1].messages[-1]
    assert isinstance(told, ToolMessage)
    assert told.content == {"run": 1}


async def test_an_action_that_outlived_its_turn_is_told_in_the_next() -> None:
    async def slowly(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(5)
        return ok("sent")

    talk = Talk([[ToolCall("call_0123456789", "send", {})], "It was sent."], make_action("send", slowly))
    turn = asyncio.create_task(talk.say("send it"))
    await asyncio.sleep(1)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await talk.gate.executor.aclose()
    await talk.say("and?")
    told = talk.model.prompts[-1].messages
    assert ToolMessage("call_0123456789", "send", "sent") in told
    assert told[-1] == UserMessage("and?")
