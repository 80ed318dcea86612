"""The unmodified google SDK converses with `antiphon sim gemini-live`, which misbehaves on command."""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from google import genai
from google.genai import errors, types
from google.genai.live import AsyncSession

from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(90)]

MODEL = "gemini-3.8-live"
TIME_TOOL = {
    "function_declarations": [
        {
            "name": "get_current_time",
            "description": "Tells the time.",
            "parameters": {"type": "OBJECT", "properties": {"timezone": {"type": "STRING"}}},
        }
    ]
}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    folder = tmp_path_factory.mktemp("sim")
    with run_simulator("gemini-live", "--key", "right", "--tls-dir", "tls", folder=folder) as running:
        yield running


@asynccontextmanager
async def connect(
    simulator: RunningSimulator, *, handle: str | None = None, key: str = "right", model: str = MODEL, **config: Any
) -> AsyncIterator[AsyncSession]:
    found = re.search(r"SSL_CERT_FILE=(\S+)", simulator.announced)
    assert found is not None
    options = types.HttpOptions(
        base_url=f"https://localhost:{simulator.port}",
        api_version="v1beta",
        async_client_args={"ssl": ssl.create_default_context(cafile=found[1])},
    )
    settings = {
        "response_modalities": ["AUDIO"],
        "output_audio_transcription": {},
        "session_resumption": {"handle": handle},
        "tools": [TIME_TOOL],
        **config,
    }
    client = genai.Client(api_key=key, http_options=options)
    async with client.aio.live.connect(model=model, config=types.LiveConnectConfig(**settings)) as session:
        yield session


async def messages(session: AsyncSession) -> AsyncIterator[types.LiveServerMessage]:
    """Yields messages of all turns: the SDK's own iterator ends with each turn."""
    while True:
        async for message in session.receive():
            yield message


async def until(session: AsyncSession, field: str) -> list[types.LiveServerMessage]:
    """Returns the messages up to the one that has this field, at its top or in its content."""
    heard: list[types.LiveServerMessage] = []
    async with asyncio.timeout(20):
        async for message in messages(session):
            heard.append(message)
            if getattr(message, field, None) or getattr(message.server_content, field, None):
                break
    return heard


async def ask(session: AsyncSession, words: str) -> None:
    await session.send_realtime_input(text=words)


async def call_of(session: AsyncSession) -> types.FunctionCall:
    tool_call = (await until(session, "tool_call"))[-1].tool_call
    assert tool_call is not None
    assert tool_call.function_calls is not None
    return tool_call.function_calls[0]


async def answer_call(session: AsyncSession, call_id: str | None) -> None:
    response = types.FunctionResponse(id=call_id, name="get_current_time", response={"time": "12:30"})
    await session.send_tool_response(function_responses=[response])


def words(heard: list[types.LiveServerMessage]) -> str:
    contents = [message.server_content for message in heard if message.server_content]
    return "".join(
        content.output_transcription.text or "" for content in contents if content.output_transcription is not None
    )


def chunks(heard: list[types.LiveServerMessage]) -> int:
    return sum(message.data is not None for message in heard if message.server_content)


async def converse(session: AsyncSession) -> str:
    """Asks something, and returns the newest handle after the answer."""
    await ask(session, "bye")
    await until(session, "turn_complete")
    update = (await until(session, "session_resumption_update"))[-1].session_resumption_update
    assert update is not None
    assert update.new_handle
    return update.new_handle


async def end_of(session: AsyncSession) -> errors.APIError:
    """Reads until the connection ends, and returns the SDK's error."""
    async with asyncio.timeout(20):
        try:
            async for _ in messages(session):
                pass
        except errors.APIError as ended:
            return ended
    raise AssertionError("the stream of messages ended without an error")


async def refusal_of(simulator: RunningSimulator, **options: Any) -> errors.APIError:
    """Connects, and returns the SDK's error."""
    try:
        async with asyncio.timeout(20), connect(simulator, **options):
            pass
    except errors.APIError as refused:
        return refused
    raise AssertionError("the connection was accepted")


async def test_the_sdk_converses_with_it_and_its_own_tool_is_called(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as session:
        await ask(session, "what time is it in Tokyo")
        call = await call_of(session)
        assert (call.name, call.args) == ("get_current_time", {"timezone": "Tokyo"})
        await answer_call(session, call.id)
        heard = await until(session, "turn_complete")
    assert "12:30" in words(heard)
    assert chunks(heard) > 2


async def test_a_handle_resumes_with_the_conversation(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as session:
        handle = await converse(session)
    async with connect(simulator, handle=handle) as session:
        await ask(session, "bye")
        assert "Goodbye" in words(await until(session, "turn_complete"))


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ({"key": "wrong"}, 1007, "API key not valid"),
        ({"model": "gemini-9"}, 1008, "models/gemini-9 is not found"),
        ({"handle": "from-another-world"}, 1007, "Invalid session handle"),
        ({"thinking_config": {"thinking_level": "LOW"}}, 1007, "Thinking level is not supported"),
    ],
)
async def test_the_rules_of_the_provider_hold(
    simulator: RunningSimulator, options: dict[str, Any], code: int, told: str
) -> None:
    simulator.disarm()
    refused = await refusal_of(simulator, **options)
    assert refused.code == code
    assert told in str(refused.details)


async def test_the_upgrade_is_refused_with_429(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "refuse")
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with connect(simulator):
            pass
    assert refused.value.response.status_code == 429
    async with connect(simulator):
        pass


async def test_go_away_is_followed_by_silence(simulator: RunningSimulator) -> None:
    simulator.arm({"client_message": "text"}, {"go_away": {"seconds_left": 2.5, "then": "silence"}})
    async with connect(simulator) as session:
        await ask(session, "bye")
        warned = (await until(session, "go_away"))[-1]
        assert warned.go_away is not None
        assert warned.go_away.time_left == "2.5s"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(aiter(session.receive())), 1.5)


async def test_the_quota_ends_in_mid_sentence(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 2}, "quota")
    async with connect(simulator) as session:
        await ask(session, "bye")
        ended = await end_of(session)
    assert ended.code == 1011
    assert "exceeded your current quota" in str(ended.details)


@pytest.mark.parametrize(("problem", "code"), [("expired", 1008), ("foreign", 1007)])
async def test_a_good_handle_is_refused_and_the_session_lives_on(
    simulator: RunningSimulator, problem: str, code: int
) -> None:
    simulator.disarm()
    async with connect(simulator) as session:
        handle = await converse(session)
    simulator.arm("resume", {"reject_handle": {"problem": problem}})
    assert (await refusal_of(simulator, handle=handle)).code == code
    async with connect(simulator, handle=handle) as session:
        await converse(session)


async def test_a_resumption_while_the_old_socket_is_open_is_refused(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as session:
        handle = await converse(session)
        assert (await refusal_of(simulator, handle=handle)).code == 1011


async def test_a_call_comes_again_after_a_resumption(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as session:
        handle = await converse(session)
        await ask(session, "what time is it")
        first = await call_of(session)
        await answer_call(session, first.id)
        await until(session, "turn_complete")
    simulator.arm("resumed", "duplicate_tool_call")
    async with connect(simulator, handle=handle) as session:
        again = await call_of(session)
        assert (again.id, again.name) == (first.id, first.name)
        await answer_call(session, again.id)
        await converse(session)


async def test_a_call_comes_without_its_id_and_can_be_answered(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "tool_call_without_id")
    async with connect(simulator) as session:
        await ask(session, "what time is it")
        call = await call_of(session)
        assert call.id is None
        await answer_call(session, "made-up-by-the-client")
        assert "12:30" in words(await until(session, "turn_complete"))


async def test_a_cancelled_call_need_not_be_answered(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "cancel_tool_call")
    async with connect(simulator) as session:
        await ask(session, "what time is it")
        call = await call_of(session)
        cancelled = (await until(session, "tool_call_cancellation"))[-1].tool_call_cancellation
        assert cancelled is not None
        assert cancelled.ids == [call.id]
        assert words(await until(session, "turn_complete")) == ""
        await ask(session, "bye")
        assert "Goodbye" in words(await until(session, "turn_complete"))


async def test_the_answer_stalls_and_goes_on(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 1}, {"stall": {"seconds": 1.5}})
    async with connect(simulator) as session:
        await ask(session, "bye")
        began_s = time.monotonic()
        assert "Goodbye" in words(await until(session, "turn_complete"))
        assert time.monotonic() - began_s >= 1.4


async def test_the_model_greets_again_after_a_resumption(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as session:
        handle = await converse(session)
    simulator.arm("resumed", {"greet": {"text": "Hello again!"}})
    async with connect(simulator, handle=handle) as session:
        assert words(await until(session, "turn_complete")) == "Hello again!"


@pytest.mark.parametrize("action", ["reset", "half_frame"])
async def test_the_connection_breaks_without_a_close_frame(simulator: RunningSimulator, action: str) -> None:
    simulator.arm({"audio_chunk": 1}, action)
    async with connect(simulator) as session:
        await ask(session, "bye")
        assert (await end_of(session)).code == 1006
