"""What a session may expect of every `TextModel`."""

import asyncio

import pytest

from antiphon.models.base import CallRequested, Event, OutputText, Prompt, StopReason, TextModel, TurnComplete
from antiphon.models.builtin import BuiltinModel
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.talking_tools import Box, talking_tools

MODELS = {"builtin": lambda: BuiltinModel(Box(talking_tools()))}

HELLO = UserMessage("hello")
ASKS_FOR_A_TOOL = UserMessage("what time is it in Tokyo?")


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> TextModel:
    return MODELS[request.param]()


def prompt(*messages: Message) -> Prompt:
    schemas = [{"name": tool_id, "parameters": tool.spec.parameters} for tool_id, tool in talking_tools().items()]
    return Prompt("You are a helpful assistant.", messages, schemas, Mode.TEXT)


async def reply(model: TextModel, *messages: Message) -> list[Event]:
    return [event async for event in model.reply(prompt(*messages))]


async def test_a_message_ends_with_one_turn_complete(model: TextModel) -> None:
    events = await reply(model, HELLO)
    assert [n for n, event in enumerate(events) if isinstance(event, TurnComplete)] == [len(events) - 1]


async def test_words_are_done_when_they_are_said(model: TextModel) -> None:
    events = await reply(model, HELLO)
    assert "".join(event.text for event in events if isinstance(event, OutputText)).strip()
    assert events[-1] == TurnComplete(StopReason.DONE)


async def test_a_call_names_a_tool_of_the_prompt_with_its_arguments(model: TextModel) -> None:
    (call,) = [event.call for event in await reply(model, ASKS_FOR_A_TOOL) if isinstance(event, CallRequested)]
    assert call.name in {tool["name"] for tool in prompt(HELLO).tools}
    assert talking_tools()[call.name].arguments.accepts(call.args)


async def test_a_message_with_calls_says_that_it_waits_for_them(model: TextModel) -> None:
    events = await reply(model, ASKS_FOR_A_TOOL)
    assert events[-1] == TurnComplete(StopReason.CALLS)


async def test_a_result_is_put_into_words(model: TextModel) -> None:
    call = CallMade("call_1", "get_time", {"timezone": "Tokyo"})
    result = ToolMessage("call_1", "get_time", {"iso": "16:10"}, "It's ten past four in Tokyo.")
    events = await reply(model, ASKS_FOR_A_TOOL, AssistantMessage(calls=(call,)), result)
    assert "four" in "".join(event.text for event in events if isinstance(event, OutputText))


async def test_one_instance_serves_conversations_side_by_side(model: TextModel) -> None:
    alone = [await reply(model, message) for message in (HELLO, ASKS_FOR_A_TOOL)]
    together = await asyncio.gather(reply(model, HELLO), reply(model, ASKS_FOR_A_TOOL))
    assert list(together) == alone


async def test_a_message_may_be_abandoned(model: TextModel) -> None:
    events = model.reply(prompt(HELLO))
    assert isinstance(await anext(events), OutputText)
    await events.aclose()  # type: ignore[attr-defined]
    assert await reply(model, HELLO)


def test_it_has_a_name(model: TextModel) -> None:
    assert model.profile.name
