"""The simulator of Ollama: it answers as Ollama does, calls the client's tools, and its streams break on command."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.compose.app import load_tools
from antiphon.config import Settings, Tools
from antiphon.models.base import CallRequested, Event, FailureKind, ModelError, Prompt, TextDelta
from antiphon.models.providers.ollama import OllamaModel
from antiphon.models.providers.references import ModelReference, Provider
from antiphon.server.serving import listen
from antiphon.sim.assistant import ToolAssistant
from antiphon.sim.faults import FaultBook
from antiphon.sim.message_log import MessageLog
from antiphon.sim.ollama import OllamaApi
from antiphon.sim.script import parse_script
from antiphon.sim.serving import serving
from antiphon.sim.stream_injector import StreamInjector
from antiphon.sim.vendors.ollama import VOCABULARY
from antiphon.sim.wire import Wires
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, CallMade, ToolMessage, UserMessage

pytestmark = pytest.mark.real_time

TIME_TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_time",
        "parameters": {"type": "object", "properties": {"timezone": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tool]:
    folder: Path = tmp_path_factory.mktemp("tools")
    return load_tools(Settings(project_dir=folder, data_dir=folder, tools=Tools(paths=()))).tools


@asynccontextmanager
async def simulated(known: Mapping[str, Tool], script: str = "faults: []") -> AsyncIterator[str]:
    faults, wires = FaultBook(), Wires()
    faults.add(parse_script(script, VOCABULARY))
    api = OllamaApi(ToolAssistant(known)).make_app()
    log = MessageLog(asyncio.get_running_loop().time)
    injector = StreamInjector(api, faults=faults, log=log, wire_of=wires.of)
    sockets = listen("127.0.0.1", 0)
    async with serving(injector, sockets, wires=wires):
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    for each in sockets:
        each.close()


@asynccontextmanager
async def provider(url: str, **options: Any) -> AsyncIterator[OllamaModel]:
    model = OllamaModel(ModelReference(Provider.OLLAMA, "qwen3", url), {}, **options)
    try:
        yield model
    finally:
        await model.aclose()


def asking(*messages: Any) -> Prompt:
    said = [UserMessage(each) if isinstance(each, str) else each for each in messages]
    return Prompt("Be brief.", said, [TIME_TOOL], Mode.TEXT)


async def answer(model: OllamaModel, prompt: Prompt) -> list[Event]:
    return [event async for event in model.reply(prompt)]


def words(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def lines_of(url: str, **body: Any) -> list[dict[str, Any]]:
    messages = [{"role": "user", "content": "what time is it"}]
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{url}/api/chat", json={"model": "qwen3", "messages": messages, **body})
        return [json.loads(line) for line in response.text.splitlines()]


async def test_our_provider_converses_with_it_and_runs_its_own_tool(known: Mapping[str, Tool]) -> None:
    async with simulated(known) as url, provider(url) as model:
        events = await answer(model, asking("what time is it in Tokyo"))
        call = next(event.call for event in events if isinstance(event, CallRequested))
        assert (call.name, call.args) == ("get_current_time", {"timezone": "Tokyo"})
        made = AssistantMessage("", (CallMade(call.id or "", call.name, call.args),))
        result = ToolMessage(call.id or "", call.name, {"time": "12:30", "place": "Tokyo"})
        events = await answer(model, asking("what time is it in Tokyo", made, result))
        assert words(events) == "It's 12:30 in Tokyo."


async def test_a_tool_that_was_not_sent_is_not_called(known: Mapping[str, Tool]) -> None:
    async with simulated(known) as url:
        lines = await lines_of(url)
    assert not any("tool_calls" in line["message"] for line in lines)


async def test_a_tool_of_any_name_is_called_by_its_name(known: Mapping[str, Tool]) -> None:
    light = {"name": "set_light", "parameters": {"type": "object", "properties": {"room": {"type": "string"}}}}
    messages = [{"role": "user", "content": "Call set light with kitchen."}]
    async with simulated(known) as url:
        lines = await lines_of(url, messages=messages, tools=[{"type": "function", "function": light}])
    function = lines[0]["message"]["tool_calls"][0]["function"]
    assert function == {"index": 0, "name": "set_light", "arguments": {"room": "kitchen"}}
    assert (lines[-1]["done"], lines[-1]["done_reason"]) == (True, "stop")


async def test_thoughts_come_first_if_they_are_wanted(known: Mapping[str, Tool]) -> None:
    async with simulated(known) as url:
        assert "thinking" in (await lines_of(url, think=True))[0]["message"]
        assert "thinking" not in (await lines_of(url))[0]["message"]


async def test_an_answer_without_streaming_is_one_object(known: Mapping[str, Tool]) -> None:
    async with simulated(known) as url:
        (whole,) = await lines_of(url, stream=False, tools=[TIME_TOOL])
    assert whole["done"] is True
    assert whole["message"]["tool_calls"][0]["function"]["name"] == "get_current_time"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"model": "missing"}, "model 'missing' not found"),
        ({"model": "llama3.2", "think": True}, '"llama3.2:latest" does not support thinking'),
        ({"messages": [{"role": "robot"}]}, "invalid role: robot"),
        ({"messages": [{"role": "user", "content": 3}]}, "cannot unmarshal"),
        ({"messages": {}}, "cannot unmarshal"),
    ],
)
async def test_bad_requests_are_refused_as_ollama_does(
    known: Mapping[str, Tool], body: dict[str, Any], told: str
) -> None:
    async with simulated(known) as url:
        (line,) = await lines_of(url, **body)
    assert told in line["error"]


async def test_a_pulled_model_can_be_used_and_has_its_own_limits(known: Mapping[str, Tool]) -> None:
    async with simulated(known) as url, httpx2.AsyncClient() as client:
        pulled = await client.post(f"{url}/api/pull", json={"model": "smollm2:135m"})
        assert json.loads(pulled.text.splitlines()[-1]) == {"status": "success"}
        missing = await client.post(f"{url}/api/pull", json={"model": "nothing"})
        assert "file does not exist" in missing.text
        tags = (await client.get(f"{url}/api/tags")).json()["models"]
        assert "smollm2:135m" in [each["name"] for each in tags]
        shown = await client.post(f"{url}/api/show", json={"model": "smollm2:135m"})
        assert shown.json()["capabilities"] == ["completion"]
        (line,) = await lines_of(url, model="smollm2:135m", tools=[TIME_TOOL])
        assert "does not support tools" in line["error"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("{when: connect, do: {refuse: {status: 500}}, times: always}", FailureKind.SERVER_ERROR),
        ("{when: connect, do: {refuse: {status: 429}}, times: always}", FailureKind.RATE_LIMITED),
        ("{when: {server_messages: 1}, do: reset}", FailureKind.UNREACHABLE),
        ("{when: {server_messages: 2}, do: half_frame}", FailureKind.UNREACHABLE),
        ("{when: {server_messages: 1}, do: error_line}", None),
        ("{when: {server_messages: 2}, do: malformed}", FailureKind.INVALID_RESPONSE),
        ("{when: {server_message: done}, do: drop}", FailureKind.CUT_OFF),
        ("{when: {server_messages: 2}, do: stall}", FailureKind.TIMEOUT),
        ("{when: {server_messages: 2}, do: silence}", FailureKind.TIMEOUT),
    ],
)
async def test_our_provider_reports_every_broken_stream(
    known: Mapping[str, Tool], fault: str, kind: FailureKind | None
) -> None:
    async with simulated(known, f"faults: [{fault}]") as url, provider(url, line_timeout_s=0.5) as model:
        with pytest.raises(ModelError) as failed:
            await answer(model, asking("hello"))
        assert kind is None or failed.value.kind is kind


async def test_a_short_stall_only_delays_the_answer(known: Mapping[str, Tool]) -> None:
    script = "faults: [{when: {server_messages: 1}, do: {stall: {seconds: 0.3}}}]"
    async with simulated(known, script) as url, provider(url) as model:
        began_s = asyncio.get_running_loop().time()
        assert words(await answer(model, asking("hello"))) == "Hello! What can I do for you?"
        assert asyncio.get_running_loop().time() - began_s >= 0.3


async def test_a_call_without_an_id_is_made_all_the_same(known: Mapping[str, Tool]) -> None:
    async with (
        simulated(known, "faults: [{when: connect, do: tool_call_without_id}]") as url,
        provider(url) as model,
    ):
        events = await answer(model, asking("what time is it"))
        assert [event.call.id for event in events if isinstance(event, CallRequested)] == [None]


@pytest.mark.parametrize(
    ("style", "begins"), [("fenced", "```json"), ("tool_call", "<tool_call>"), ("tools", "<tools>")]
)
async def test_a_call_is_written_as_text(known: Mapping[str, Tool], style: str, begins: str) -> None:
    script = f"faults: [{{when: connect, do: {{tool_call_as_text: {{style: {style}}}}}}}]"
    async with simulated(known, script) as url:
        said = (await lines_of(url, tools=[TIME_TOOL]))[0]["message"]
    assert said["content"].startswith(begins)
    assert "get_current_time" in said["content"]
    assert "tool_calls" not in said
