"""What a session may expect of every `TextModel`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from antiphon.authoring.adapters import adapt_for_openai_chat as adapt
from antiphon.models.base import CallRequested, Event, MessageComplete, Prompt, StopReason, TextDelta, TextModel
from antiphon.models.bounded import BoundedModel
from antiphon.models.builtin import BuiltinModel
from antiphon.models.local_first import LocalFirstModel
from antiphon.models.shared_prefix import SharedPrefixModel
from antiphon.models.shortlist import ShortlistModel
from antiphon.models.tool_ranking import LexicalRanker
from antiphon.models.written_calls.model import WrittenCallsModel
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from tests.fakes import ollama_server as ollama
from tests.fakes.chat_server import Answer, Request, call_delta, delta, serve_model, stream, words
from tests.fakes.talking_tools import Box, talking_tools

HELLO = UserMessage("hello")
ASKS_FOR_A_TOOL = UserMessage("what time is it in Tokyo?")


def converse(request: Request) -> Answer:
    """The replies of a well-behaved chat-completions model: it repeats results, and knows one tool."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return words(f"The tool says {last['content']}.")
    if last["content"] == ASKS_FOR_A_TOOL.text:
        function = {"name": "get_time", "arguments": '{"timezone":"Tokyo"}'}
        return stream(call_delta({"index": 0, "id": "call_0123456789", "type": "function", "function": function}))
    return stream(delta(content="Hello "), delta(content="there."))


def converse_with_ollama(request: Request) -> Answer:
    """The same of a model behind Ollama."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return ollama.chat(ollama.line(f"The tool {last['tool_name']} says {last['content']}."))
    if last["content"] == ASKS_FOR_A_TOOL.text:
        return ollama.chat(ollama.line(tool_calls=[ollama.call("get_time", {"timezone": "Tokyo"}, "call_ab12cd34")]))
    return ollama.chat(ollama.line("Hello "), ollama.line("there."))


def converse_in_text(request: Request) -> Answer:
    """The same of a model that writes its calls as text."""
    if request.messages[-1]["content"] == ASKS_FOR_A_TOOL.text:
        return words('<tool_call> {"name": "get_time", "arguments": {"timezone": "Tokyo"}} </tool_call>')
    return converse(request)


WRAPPERS: Mapping[str, Callable[[BuiltinModel], TextModel]] = {
    "bounded": BoundedModel,
    "local_first": lambda model: LocalFirstModel(model, model),
    "shared_prefix": SharedPrefixModel,
    "shortlist": lambda model: ShortlistModel(model, LexicalRanker(), 2),
}


@pytest.fixture(
    params=[
        "builtin",
        "bounded",
        "local_first",
        "shared_prefix",
        "shortlist",
        pytest.param("openai_compatible", marks=pytest.mark.real_time),
        pytest.param("ollama", marks=pytest.mark.real_time),
        pytest.param("written_calls", marks=pytest.mark.real_time),
    ]
)
async def model(request: pytest.FixtureRequest) -> AsyncIterator[TextModel]:
    if request.param == "builtin":
        yield BuiltinModel(Box(talking_tools()))
        return
    if request.param in WRAPPERS:
        yield WRAPPERS[request.param](BuiltinModel(Box(talking_tools())))
        return
    if request.param == "ollama":
        async with ollama.serve_ollama(converse_with_ollama) as (_, native):
            yield native
        return
    if request.param == "written_calls":
        async with serve_model(converse_in_text) as (_, small):
            yield WrittenCallsModel(BoundedModel(small))
        return
    async with serve_model(converse) as (_, served):
        yield served


def prompt(*messages: Message) -> Prompt:
    schemas = [adapt(tool.spec) for tool in talking_tools().values()]
    return Prompt("You are a helpful assistant.", messages, schemas, Mode.TEXT)


async def reply(model: TextModel, *messages: Message) -> list[Event]:
    return [event async for event in model.reply(prompt(*messages))]


async def test_a_message_ends_with_one_message_complete(model: TextModel) -> None:
    events = await reply(model, HELLO)
    assert [n for n, event in enumerate(events) if isinstance(event, MessageComplete)] == [len(events) - 1]


async def test_a_message_without_calls_is_done(model: TextModel) -> None:
    events = await reply(model, HELLO)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip()
    assert events[-1] == MessageComplete(StopReason.DONE)


async def test_a_call_names_a_tool_from_the_prompt_and_its_arguments(model: TextModel) -> None:
    (call,) = [event.call for event in await reply(model, ASKS_FOR_A_TOOL) if isinstance(event, CallRequested)]
    assert call.name in {tool["function"]["name"] for tool in prompt(HELLO).tools}
    assert talking_tools()[call.name].arguments.accepts(call.args)


async def test_a_message_with_calls_stops_for_tool_results(model: TextModel) -> None:
    events = await reply(model, ASKS_FOR_A_TOOL)
    end = events[-1]
    assert isinstance(end, MessageComplete)
    assert end.reason is StopReason.CALLS


async def test_a_result_is_phrased_as_text(model: TextModel) -> None:
    call = CallMade("call_1", "get_time", {"timezone": "Tokyo"})
    result = ToolMessage("call_1", "get_time", {"time": "ten past four"}, "It's ten past four in Tokyo.")
    events = await reply(model, ASKS_FOR_A_TOOL, AssistantMessage(calls=(call,)), result)
    assert "four" in "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_one_instance_serves_concurrent_conversations(model: TextModel) -> None:
    alone = [await reply(model, message) for message in (HELLO, ASKS_FOR_A_TOOL)]
    together = await asyncio.gather(reply(model, HELLO), reply(model, ASKS_FOR_A_TOOL))
    assert list(together) == alone


async def test_a_message_may_be_abandoned(model: TextModel) -> None:
    events = model.reply(prompt(HELLO))
    assert isinstance(await anext(events), TextDelta)
    await events.aclose()  # type: ignore[attr-defined]
    assert await reply(model, HELLO)


async def test_a_text_model_has_a_name(model: TextModel) -> None:
    assert model.profile.name
