"""Our own Gemini Live provider converses with `antiphon sim gemini-live`, and withstands what that does on command."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest

from antiphon.models.live import (
    Closed,
    CloseKind,
    GoAway,
    LiveContext,
    OutputAudio,
    ResumptionUpdate,
    ToolCalls,
    ToolCancelled,
    TurnComplete,
    UpstreamError,
)
from antiphon.models.providers.gemini_connect import GeminiClient
from antiphon.models.providers.gemini_live import GeminiLive
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Transcript, UserMessage
from tests.fakes.gemini_talk import GEMINI_25, GEMINI_31, GEMINI_38, GEMINI_THINKING
from tests.wire.provider_talk import ProviderTalk
from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(90)]

TIME_TOOL = {
    "name": "get_current_time",
    "description": "Tells the time.",
    "parameters": {"type": "OBJECT", "properties": {"timezone": {"type": "STRING"}}},
}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    folder = tmp_path_factory.mktemp("sim")
    with run_simulator("gemini-live", "--key", "right", "--tls-dir", "tls", folder=folder) as running:
        yield running


async def newest_handle(talk: ProviderTalk) -> str:
    """The handle at the end of the last turn."""
    await asyncio.sleep(0.2)
    found = next(event.handle for event in reversed(talk.events) if isinstance(event, ResumptionUpdate))
    assert found is not None
    return found


def make_model(simulator: RunningSimulator, name: str = GEMINI_38, key: str = "right") -> GeminiLive:
    found = re.search(r"SSL_CERT_FILE=(\S+)", simulator.announced)
    assert found is not None
    with patch.dict(os.environ, {"SSL_CERT_FILE": found[1]}):
        return GeminiLive(GeminiClient(name, f"https://localhost:{simulator.port}", key))


def a_context(*history: UserMessage | AssistantMessage) -> LiveContext:
    return LiveContext("You are kind.", Transcript(), history, [TIME_TOOL], Mode.VOICE)


@asynccontextmanager
async def talking(
    simulator: RunningSimulator, name: str = GEMINI_38, *, resume: str | None = None
) -> AsyncIterator[ProviderTalk]:
    model = make_model(simulator, name)
    await model.connect(a_context(UserMessage("I am Ada."), AssistantMessage("Hello Ada.")), resume)
    talk = ProviderTalk(model)
    try:
        yield talk
    finally:
        await model.close()
        await talk.reading


@pytest.mark.parametrize("name", [GEMINI_38, GEMINI_THINKING, GEMINI_31, GEMINI_25])
async def test_every_model_answers_with_a_tool(simulator: RunningSimulator, name: str) -> None:
    simulator.disarm()
    async with talking(simulator, name) as talk:
        assert "12:30" in await talk.ask("t", "what time is it in Tokyo")
        assert sum(len(event.pcm) for event in talk.events if isinstance(event, OutputAudio)) > 24_000
        assert "Goodbye" in await talk.ask("u", "bye")


async def test_a_handle_resumes_the_session(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with talking(simulator) as talk:
        await talk.ask("t", "bye")
        handle = await newest_handle(talk)
    async with talking(simulator, resume=handle) as talk:
        assert "Goodbye" in await talk.ask("u", "bye")


@pytest.mark.parametrize("problem", ["expired", "foreign"])
async def test_a_refused_handle_is_dead(simulator: RunningSimulator, problem: str) -> None:
    simulator.arm("resume", {"reject_handle": {"problem": problem}})
    model = make_model(simulator)
    with pytest.raises(UpstreamError) as refused:
        await model.connect(a_context(), "any-handle")
    assert refused.value.close_kind is CloseKind.DEAD_HANDLE
    await model.close()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"key": "wrong"}, CloseKind.CONFIGURATION, "refused the API key. Check GEMINI_API_KEY"),
        ({"name": "gemini-9"}, CloseKind.CONFIGURATION, "There is no model gemini-live:gemini-9"),
    ],
)
async def test_a_refused_setup_is_explained(
    simulator: RunningSimulator, options: dict[str, Any], kind: CloseKind, says: str
) -> None:
    simulator.disarm()
    model = make_model(simulator, **options)
    with pytest.raises(UpstreamError, match=says) as refused:
        await model.connect(a_context())
    assert refused.value.close_kind is kind
    await model.close()


async def test_a_refused_upgrade_is_a_quota(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "refuse")
    model = make_model(simulator)
    with pytest.raises(UpstreamError) as refused:
        await model.connect(a_context())
    assert (refused.value.close_kind, refused.value.status) == (CloseKind.QUOTA, 429)
    await model.close()


@pytest.mark.parametrize(
    ("action", "kind"),
    [("quota", CloseKind.QUOTA), ("reset", CloseKind.TRANSIENT), ("half_frame", CloseKind.TRANSIENT)],
)
async def test_an_end_in_mid_sentence_is_told(simulator: RunningSimulator, action: str, kind: CloseKind) -> None:
    simulator.arm({"audio_chunk": 2}, action)
    async with talking(simulator) as talk:
        talk.model.respond("t", "bye")
        assert (await talk.until(Closed)).kind is kind
        assert talk.events[-1] == await talk.until(Closed)


async def test_a_go_away_is_told_with_its_time(simulator: RunningSimulator) -> None:
    simulator.arm({"client_message": "clientContent"}, {"go_away": {"seconds_left": 2.5, "then": "silence"}})
    async with talking(simulator) as talk:
        assert await talk.until(GoAway) == GoAway(2_500)


async def test_a_call_without_an_id_is_answered(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "tool_call_without_id")
    async with talking(simulator) as talk:
        await talk.ask("t", "what time is it")
        assert (await talk.until(ToolCalls)).calls[0].id is None
        assert "Goodbye" in await talk.ask("u", "bye")


async def test_a_cancelled_call_is_told_and_the_conversation_goes_on(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "cancel_tool_call")
    async with talking(simulator) as talk:
        talk.answers_calls = False
        talk.model.respond("t", "what time is it")
        made = await talk.until(ToolCalls)
        assert (await talk.until(ToolCancelled)).ids == (made.calls[0].id,)
        await talk.until(TurnComplete, lambda event: event.turn == "t")
        assert "Goodbye" in await talk.ask("u", "bye")
