"""Our own provider of OpenAI Realtime converses with `antiphon sim openai-realtime`, which misbehaves on command."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.models.live import (
    Closed,
    CloseKind,
    LiveContext,
    OutputAudio,
    ToolCalls,
    TurnComplete,
    UpstreamError,
)
from antiphon.models.providers.openai_realtime import OpenAIRealtime, azure_endpoint, openai_endpoint
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Transcript, UserMessage
from tests.wire.provider_talk import ProviderTalk
from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(90)]

TIME_TOOL = {
    "type": "function",
    "name": "get_current_time",
    "description": "Tells the time.",
    "parameters": {"type": "object", "properties": {"timezone": {"type": "string"}}},
}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    with run_simulator("openai-realtime", "--key", "right", folder=tmp_path_factory.mktemp("sim")) as running:
        yield running


def make_model(
    simulator: RunningSimulator, name: str = "gpt-realtime-2", key: str = "right", *, azure: bool = False
) -> OpenAIRealtime:
    if azure:
        return OpenAIRealtime(azure_endpoint(name, simulator.url, key))
    return OpenAIRealtime(openai_endpoint(name, f"{simulator.url}/v1", key))


def a_context(*history: UserMessage | AssistantMessage) -> LiveContext:
    return LiveContext("You are kind.", Transcript(), history, [TIME_TOOL], Mode.VOICE)


@asynccontextmanager
async def talking(simulator: RunningSimulator, *, azure: bool = False) -> AsyncIterator[ProviderTalk]:
    model = make_model(simulator, azure=azure)
    await model.connect(a_context(UserMessage("I am Ada."), AssistantMessage("Hello Ada.")))
    talk = ProviderTalk(model)
    try:
        yield talk
    finally:
        await model.close()
        await talk.reading


@pytest.mark.parametrize("azure", [False, True])
async def test_a_question_is_answered_with_a_tool(simulator: RunningSimulator, azure: bool) -> None:
    simulator.disarm()
    async with talking(simulator, azure=azure) as talk:
        assert "12:30" in await talk.ask("t", "what time is it in Tokyo")
        assert sum(len(event.pcm) for event in talk.events if isinstance(event, OutputAudio)) > 24_000
        assert "Goodbye" in await talk.ask("u", "bye")


async def test_a_question_during_an_answer_is_answered_next(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with talking(simulator) as talk:
        talk.model.respond("t", "tell me a joke")
        await talk.until(OutputAudio)
        assert "Goodbye" in await talk.ask("u", "bye")
        assert talk.events.count(TurnComplete("t")) == 1
        refused = [entry["message"] for entry in simulator.log() if entry.get("message", {}).get("type") == "error"]
        assert [error for error in refused if "active response" in error["error"]["message"]] == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key": "wrong"}, "refused the API key. Check OPENAI_API_KEY"),
        ({"name": "gpt-9"}, "openai-realtime:gpt-9 was not found at"),
    ],
)
async def test_a_refused_session_is_explained(simulator: RunningSimulator, options: dict[str, Any], says: str) -> None:
    simulator.disarm()
    model = make_model(simulator, **options)
    with pytest.raises(UpstreamError, match=says) as refused:
        await model.connect(a_context())
    assert refused.value.close_kind is CloseKind.CONFIGURATION
    await model.close()


async def test_a_refused_upgrade_is_a_quota(simulator: RunningSimulator) -> None:
    simulator.arm("connect", {"refuse": {"status": 429, "retry_after_s": 3}})
    model = make_model(simulator)
    with pytest.raises(UpstreamError) as refused:
        await model.connect(a_context())
    assert (refused.value.close_kind, refused.value.retry_after_s) == (CloseKind.QUOTA, 3)
    await model.close()


@pytest.mark.parametrize("action", ["reset", "half_frame"])
async def test_an_end_in_mid_sentence_is_told(simulator: RunningSimulator, action: str) -> None:
    simulator.arm({"audio_chunk": 2}, action)
    async with talking(simulator) as talk:
        talk.model.respond("t", "bye")
        assert (await talk.until(Closed)).kind is CloseKind.TRANSIENT
        assert talk.events[-1] == await talk.until(Closed)


async def test_a_quota_in_mid_sentence_is_told(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 2}, "quota")
    async with talking(simulator) as talk:
        talk.model.respond("t", "bye")
        closed = await talk.until(Closed)
        assert closed.kind is CloseKind.QUOTA
        assert "accepts no more requests for now: You exceeded" in closed.reason


async def test_a_call_without_an_id_is_answered(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "tool_call_without_id")
    async with talking(simulator) as talk:
        await talk.ask("t", "what time is it")
        assert (await talk.until(ToolCalls)).calls[0].id is None
        assert "Goodbye" in await talk.ask("u", "bye")


@pytest.mark.parametrize("action", ["speech_and_tool_call", "cancel_tool_call"])
async def test_an_odd_call_does_not_end_the_conversation(simulator: RunningSimulator, action: str) -> None:
    simulator.arm("connect", action)
    async with talking(simulator) as talk:
        await talk.ask("t", "what time is it")
        simulator.disarm()
        assert "Goodbye" in await talk.ask("u", "bye")
        assert talk.events.count(TurnComplete("t")) == talk.events.count(TurnComplete("u")) == 1


async def test_of_two_responses_at_once_one_is_heard(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 2}, "two_responses")
    async with talking(simulator) as talk:
        assert (await talk.ask("t", "bye")).count("Goodbye") == 1
        await asyncio.sleep(0.5)
        assert talk.events.count(TurnComplete("t")) == 1
        assert not any(isinstance(event, Closed) for event in talk.events)
