"""What the offline assistant answers in place of a model, and what it leaves to it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from antiphon.authoring.adapters import adapt_for_openai_chat
from antiphon.models.base import (
    CallRequested,
    Event,
    FailureKind,
    MessageComplete,
    ModelError,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
)
from antiphon.models.builtin import BuiltinModel
from antiphon.models.live import GenerationComplete
from antiphon.models.local_first import MARK, LocalFirstModel
from antiphon.models.text_live import TextLiveModel
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes.paced import listening
from tests.fakes.scripted import ScriptedModel
from tests.fakes.talking_tools import Box, make_spec, make_tool, talking_tools

ASSISTANT = BuiltinModel(Box(talking_tools()))
TIME = UserMessage("what time is it in Tokyo?")
SKY = UserMessage("why is the sky blue?")


class DeadModel:
    """A model whose server cannot be reached."""

    profile = TextProfile("dead", needs_network=True)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        raise ModelError("dead cannot be reached.", kind=FailureKind.UNREACHABLE)
        yield


TOOLS = [adapt_for_openai_chat(tool.spec) for tool in talking_tools().values()]


def prompt(*messages: Message) -> Prompt:
    return Prompt("", messages, TOOLS, Mode.TEXT)


async def is_local(*messages: Message) -> bool:
    """Whether the assistant alone was asked for the next message."""
    model = ScriptedModel([])
    events = [event async for event in LocalFirstModel(ASSISTANT, model).reply(prompt(*messages))]
    end = events[-1]
    assert isinstance(end, MessageComplete)
    assert end.is_local != bool(model.prompts)
    return end.is_local


def run(content: Any, *, ok: bool = True, extra: Any = MARK, args: Any = None) -> list[Message]:
    made = CallMade("c1", "get_time", args or {"timezone": "Tokyo"}, extra)
    return [AssistantMessage(calls=(made,)), ToolMessage("c1", "get_time", content, "It is noon.", ok)]


def failed(type: ErrorType, **more: Any) -> dict[str, Any]:
    return {"error": {"type": type, "message": "There is no such place.", **more}}


async def test_a_sentence_of_a_tool_becomes_a_marked_call_without_the_model() -> None:
    model = ScriptedModel([])
    events = [event async for event in LocalFirstModel(ASSISTANT, model).reply(prompt(TIME))]
    assert events == [
        CallRequested(ToolCall(None, "get_time", {"timezone": "Tokyo"}, extra=MARK)),
        MessageComplete(StopReason.CALLS, is_local=True),
    ]
    assert model.prompts == []


@pytest.mark.parametrize(
    "text",
    [
        "why is the sky blue",
        "hello",
        "thank you",
        "yes",
        "no",
        "help",
        "what can you do",
        "wat time is it in Tokio",
        "x" * 700,
        "",
    ],
)
async def test_guesses_and_small_talk_are_left_to_the_model(text: str) -> None:
    assert not await is_local(UserMessage(text))


async def test_the_results_of_its_own_calls_are_put_into_words_by_the_assistant() -> None:
    events = [e async for e in LocalFirstModel(ASSISTANT, DeadModel()).reply(prompt(TIME, *run({"time": "12:00"})))]
    assert "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_the_results_of_the_models_calls_go_to_the_model() -> None:
    assert not await is_local(TIME, *run({"time": "12:00"}, extra=None))
    assert not await is_local(TIME, *run({"time": "12:00"}, extra={"model": "openai:gpt-5", "extra_content": 1}))


async def test_a_request_after_results_that_the_model_has_not_told_goes_to_the_model() -> None:
    assert not await is_local(SKY, *run({"time": "12:00"}, extra=None), TIME)
    assert await is_local(TIME, *run({"time": "12:00"}), TIME)


async def test_a_follow_up_goes_to_whoever_answered_the_request() -> None:
    noon, london = AssistantMessage("It is noon."), UserMessage("and in London?")
    assert await is_local(TIME, *run({"time": "12:00"}), noon, london)
    assert await is_local(TIME, *run({"time": "12:00"}), noon, UserMessage("no, I meant Paris"))
    assert not await is_local(TIME, *run({"time": "12:00"}, extra=None), noon, london)
    assert not await is_local(SKY, AssistantMessage("It scatters light."), london)


@pytest.mark.parametrize("type", [ErrorType.NOT_FOUND, ErrorType.VALIDATION])
async def test_a_request_that_the_tool_cannot_read_goes_to_the_model(type: ErrorType) -> None:
    assert not await is_local(TIME, *run(failed(type), ok=False))


async def test_any_other_failure_is_told_by_the_assistant() -> None:
    assert await is_local(TIME, *run(failed(ErrorType.RATE_LIMIT), ok=False))


async def test_a_request_that_the_tool_cannot_read_is_explained_if_the_model_is_down() -> None:
    messages = [TIME, *run(failed(ErrorType.NOT_FOUND), ok=False)]
    events = [event async for event in LocalFirstModel(ASSISTANT, DeadModel()).reply(prompt(*messages))]
    assert events == [TextDelta("It is noon."), MessageComplete(StopReason.DONE, is_local=True)]


async def test_an_approval_that_the_assistant_asked_for_is_answered_by_it() -> None:
    question = run(failed(ErrorType.CONFIRMATION_REQUIRED, preview="Ask the time?"), ok=False)
    assert await is_local(TIME, *question)
    asked = [TIME, *question, AssistantMessage("Ask the time? Shall I?"), UserMessage("yes")]
    assert await is_local(*asked, *run({"time": "12:00"}, extra=None))
    assert not await is_local(*asked, *run({"time": "12:00"}, extra=None, args={"timezone": "Oslo"}))


@pytest.mark.parametrize(
    ("question", "text", "local"),
    [
        ("How many are there?", "12 plus 3", False),
        ("How many are there?", "what is 12 plus 3", True),
        ("Do you want to **stop**?", "cancel that", False),
        ("What can I do for you?", "tell me a joke", True),
        ("There are many.", "12 plus 3", True),
        ("There are many.", "cancel that", True),
    ],
)
async def test_a_fragment_after_a_question_is_an_answer_and_goes_to_the_model(
    question: str, text: str, local: bool
) -> None:
    sentences = {"add": ["[what is] {a} plus {b}"], "undo": ["cancel that"], "joke": ["tell me a joke"]}
    slots = {"a": {"type": "string"}, "b": {"type": "string"}}
    tools = {id: make_tool(make_spec(id, slots), {"data": [{"sentences": said}]}) for id, said in sentences.items()}
    model = LocalFirstModel(BuiltinModel(Box(tools)), ScriptedModel([]))
    offered = [adapt_for_openai_chat(tool.spec) for tool in tools.values()]
    asked = prompt(SKY, AssistantMessage(question), UserMessage(text))
    assert model.answers_locally(replace(asked, tools=offered)) is local


async def test_a_request_for_a_tool_that_the_session_does_not_have_goes_to_the_model() -> None:
    model = LocalFirstModel(ASSISTANT, ScriptedModel([]))
    assert model.answers_locally(prompt(TIME))
    assert not model.answers_locally(replace(prompt(TIME), tools=()))


async def test_a_client_application_with_its_own_instructions_is_answered_by_the_model() -> None:
    model = LocalFirstModel(ASSISTANT, ScriptedModel([]))
    assert not model.answers_locally(replace(prompt(TIME), allows_local=False))


async def test_the_model_fails_with_its_own_error() -> None:
    with pytest.raises(ModelError, match=r"dead cannot be reached\."):
        [event async for event in LocalFirstModel(ASSISTANT, DeadModel()).reply(prompt(SKY))]


async def test_a_local_answer_does_not_hide_that_the_model_is_down() -> None:
    model = TextLiveModel(LocalFirstModel(ASSISTANT, DeadModel()))
    async with listening(model, tools=TOOLS) as listener:
        turn = await listener.ask("what time is it in Tokyo?")
        await listener.give_results()
        assert "noon" in listener.text
        assert GenerationComplete(turn, is_local=True) in listener.events


async def test_the_model_sees_what_the_assistant_did() -> None:
    scripted = ScriptedModel(["Because of the air."])
    async with listening(TextLiveModel(LocalFirstModel(ASSISTANT, scripted)), tools=TOOLS) as listener:
        listener.respond("what time is it in Tokyo?")
        await listener.settle()
        await listener.give_results()
        await listener.settle()
        await listener.ask("why is the sky blue?")
    [seen] = scripted.prompts
    assert [type(message) for message in seen.messages] == [
        UserMessage,
        AssistantMessage,
        ToolMessage,
        AssistantMessage,
        UserMessage,
    ]


async def test_a_number_that_the_assistant_has_asked_for_is_read_by_it_and_anything_else_by_the_model() -> None:
    spec = make_spec("save_number", {"number": {"type": "string"}}, required=("number",), writes=True)
    sentences = {
        "data": [{"sentences": ["save a number"]}],
        "arguments": {"number": {"reader": "digits", "ask": "Which number?"}},
    }
    model = LocalFirstModel(BuiltinModel(Box({"save_number": make_tool(spec, sentences)})), ScriptedModel([]))

    def answers_locally(*texts: str, tools: bool = True) -> bool:
        messages = [AssistantMessage(text) if at % 2 else UserMessage(text) for at, text in enumerate(texts)]
        offered = [adapt_for_openai_chat(spec)] if tools else []
        return model.answers_locally(Prompt("", messages, offered, Mode.VOICE))

    asked = "save a number", "Which number?"
    read_back = "That's 5 5 5, right?"
    assert answers_locally(*asked, "five five five")
    assert answers_locally(*asked, "five five five", read_back, "yes")
    assert answers_locally(
        *asked, "five five five", read_back, "no", "Sorry. Please say the number again, digit by digit.", "5"
    )
    assert not answers_locally(*asked, "why do you ask")
    assert not answers_locally(*asked, "five five five", tools=False)
    assert not answers_locally("why", "Which number?", "five five five")
