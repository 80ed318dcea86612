"""The unmodified openai SDK converses with `antiphon sim openai-realtime`, which misbehaves on command."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from websockets.frames import Close

from tests.wire.simulators import RunningSimulator, run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(90)]

TIME_TOOL = {
    "type": "function",
    "name": "get_current_time",
    "description": "Tells the time.",
    "parameters": {"type": "object", "properties": {"timezone": {"type": "string"}}},
}
RESULT = json.dumps({"time": "12:30"})


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    with run_simulator("openai-realtime", "--key", "right", folder=tmp_path_factory.mktemp("sim")) as running:
        yield running


@asynccontextmanager
async def connect(
    simulator: RunningSimulator, *, key: str = "right", model: str = "gpt-realtime-2"
) -> AsyncIterator[AsyncRealtimeConnection]:
    """Connects with the tool declared."""
    async with (
        AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key=key) as client,
        client.realtime.connect(model=model) as connection,
    ):
        first = await connection.recv()
        assert first.type == "session.created", first
        await connection.session.update(session={"type": "realtime", "tools": [TIME_TOOL]})  # type: ignore[list-item]
        yield connection


async def ask(connection: AsyncRealtimeConnection, words: str) -> None:
    content: Any = [{"type": "input_text", "text": words}]
    await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
    await connection.response.create()


async def answer_call(connection: AsyncRealtimeConnection, call_id: str | None) -> None:
    item: Any = {"type": "function_call_output", "call_id": call_id, "output": RESULT}
    await connection.conversation.item.create(item=item)


async def events_until(connection: AsyncRealtimeConnection, *types: str) -> list[Any]:
    events: list[Any] = []
    async with asyncio.timeout(20):
        while not events or events[-1].type not in types:
            events.append(await connection.recv())
    return events


async def response(connection: AsyncRealtimeConnection) -> Any:
    return (await events_until(connection, "response.done"))[-1].response


async def close_of(connection: AsyncRealtimeConnection) -> Close | None:
    """Reads until the connection ends, and returns the close frame; None if it broke without one."""
    async with asyncio.timeout(20):
        while True:
            try:
                await connection.recv()
            except websockets.ConnectionClosed as closed:
                return closed.rcvd


async def test_the_sdk_converses_with_it_and_its_own_tool_is_called(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as connection:
        await ask(connection, "what time is it in Tokyo")
        (call,) = (await response(connection)).output
        assert (call.name, json.loads(call.arguments)) == ("get_current_time", {"timezone": "Tokyo"})
        await answer_call(connection, call.call_id)
        await connection.response.create()
        events = await events_until(connection, "response.done")
    assert sum(event.type == "response.output_audio.delta" for event in events) > 3
    assert "12:30" in events[-1].response.output[0].content[0].transcript


@pytest.mark.parametrize(
    ("key", "model", "close"),
    [
        ("wrong", "gpt-realtime-2", (3000, "invalid_request_error.invalid_api_key")),
        ("right", "gpt-9", (4004, "invalid_request_error.model_not_found")),
    ],
)
async def test_a_wrong_key_and_an_unknown_model_are_refused(
    simulator: RunningSimulator, key: str, model: str, close: tuple[int, str]
) -> None:
    simulator.disarm()
    async with (
        AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key=key) as client,
        client.realtime.connect(model=model) as connection,
    ):
        assert (await connection.recv()).type == "error"
        closed = await close_of(connection)
    assert closed is not None
    assert (closed.code, closed.reason) == close


async def test_the_upgrade_is_refused_with_429(simulator: RunningSimulator) -> None:
    simulator.arm("connect", {"refuse": {"status": 429, "retry_after_s": 3}})
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with connect(simulator):
            pass
    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["retry-after"] == "3"
    async with connect(simulator):
        pass


async def test_the_quota_ends_in_mid_sentence(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 2}, "quota")
    async with connect(simulator) as connection:
        await ask(connection, "what time is it")
        call = (await response(connection)).output[0]
        await answer_call(connection, call.call_id)
        await connection.response.create()
        events = await events_until(connection, "error")
        closed = await close_of(connection)
    assert sum(event.type == "response.output_audio.delta" for event in events) == 2
    assert events[-1].error.code == "insufficient_quota"
    assert closed is not None
    assert (closed.code, closed.reason) == (1013, "insufficient_quota.insufficient_quota")


async def test_the_answer_stalls_and_goes_on(simulator: RunningSimulator) -> None:
    simulator.arm({"server_message": "response.created"}, {"stall": {"seconds": 1.5}})
    async with connect(simulator) as connection:
        await ask(connection, "bye")
        await events_until(connection, "response.created")
        began_s = time.monotonic()
        assert (await response(connection)).status == "completed"
        assert time.monotonic() - began_s >= 1.4


async def test_a_stall_can_last_for_ever_while_the_socket_stays_open(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 1}, "stall")
    async with connect(simulator) as connection:
        await ask(connection, "bye")
        await events_until(connection, "response.output_audio.delta")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.recv(), 1)
        (state,) = simulator.sessions()["connections"]
        assert state["is_stalled"] is True


async def test_a_call_comes_without_its_id_and_can_be_answered(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "tool_call_without_id")
    async with connect(simulator) as connection:
        await ask(connection, "what time is it")
        call = (await response(connection)).output[0]
        assert getattr(call, "call_id", None) is None
        await answer_call(connection, "made_up_by_the_client")
        await connection.response.create()
        assert "12:30" in (await response(connection)).output[0].content[0].transcript


async def test_a_call_comes_twice_and_its_second_answer_does_no_harm(simulator: RunningSimulator) -> None:
    simulator.arm({"server_message": "answer_end"}, "duplicate_tool_call")
    async with connect(simulator) as connection:
        await ask(connection, "what time is it")
        first, second = [(await response(connection)).output[0] for _ in range(2)]
        assert first.call_id == second.call_id
        await answer_call(connection, first.call_id)
        await answer_call(connection, second.call_id)
        await connection.response.create()
        events = await events_until(connection, "response.done")
    assert not any(event.type == "error" for event in events)
    assert "12:30" in events[-1].response.output[0].content[0].transcript


async def test_a_cancelled_call_need_not_be_answered(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "cancel_tool_call")
    async with connect(simulator) as connection:
        await ask(connection, "what time is it")
        cancelled = await response(connection)
        assert (cancelled.status, cancelled.output[0].status) == ("cancelled", "incomplete")
        await ask(connection, "bye")
        assert "Goodbye" in (await response(connection)).output[0].content[0].transcript


async def test_speech_and_a_call_come_in_one_response(simulator: RunningSimulator) -> None:
    simulator.arm("connect", "speech_and_tool_call")
    async with connect(simulator) as connection:
        await ask(connection, "what time is it")
        assert [item.type for item in (await response(connection)).output] == ["message", "function_call"]


async def test_two_responses_are_under_way_at_once(simulator: RunningSimulator) -> None:
    simulator.arm({"audio_chunk": 2}, "two_responses")
    async with connect(simulator) as connection:
        await ask(connection, "bye")
        events = await events_until(connection, "response.done") + await events_until(connection, "response.done")
    assert [event.type for event in events].count("response.created") == 2


@pytest.mark.parametrize("action", ["reset", "half_frame"])
async def test_the_connection_breaks_without_a_close_frame(simulator: RunningSimulator, action: str) -> None:
    simulator.arm({"audio_chunk": 2}, action)
    async with connect(simulator) as connection:
        await ask(connection, "bye")
        assert await close_of(connection) is None


@pytest.mark.parametrize(("action", "is_alive"), [("no_pongs", False), ({"slow_pongs": {"seconds": 0.4}}, True)])
async def test_pings_get_no_pong_or_a_late_one(simulator: RunningSimulator, action: Any, is_alive: bool) -> None:
    simulator.arm("connect", action)
    headers = {"Authorization": "Bearer right"}
    url = f"ws://127.0.0.1:{simulator.port}/v1/realtime?model=gpt-realtime-2"
    async with websockets.connect(url, additional_headers=headers, ping_interval=None) as socket:
        began_s = time.monotonic()
        pong = await socket.ping()
        if is_alive:
            await asyncio.wait_for(pong, 5)
            assert time.monotonic() - began_s >= 0.4
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(pong, 1)


async def test_the_log_has_the_conversation_without_keys(simulator: RunningSimulator) -> None:
    simulator.disarm()
    async with connect(simulator) as connection:
        await ask(connection, "bye")
        await response(connection)
    entries = simulator.log()
    messages = [entry["message"] for entry in entries if isinstance(entry.get("message"), dict)]
    assert any(message.get("type") == "response.create" for message in messages)
    audio = [message for message in messages if message.get("type") == "response.output_audio.delta"]
    assert audio
    assert all(message["delta"].endswith("bytes)") for message in audio)
    assert "right" not in json.dumps(entries).replace("right now", "")
