"""OpenAI's own SDK, unmodified, holds conversations with the Realtime endpoint of a real server."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from antiphon.security.quota import Kind, Limit, Rate
from tests.fakes.scripted_live import Barge, Call, Hear, Say, Step
from tests.wire.served import Served, serve
from tests.wire.test_confirmation import write_garden

pytestmark = pytest.mark.real_time

PATIENCE_S: Final = 15.0
FRAME: Final = base64.b64encode(bytes(2 * 24 * 100)).decode()
"""100 ms of silence. The scripted voice counts audio and does not listen to it."""
WEATHER: Final = {
    "type": "function",
    "name": "get_tides",
    "description": "Gets the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
LONG: Final = Say("One, two, three, four, five, six, seven, eight.", audio_ms=6_000)


class Conversation:
    """The SDK's connection, and the events that it gave."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[Any] = []

    async def until(self, type: str) -> Any:
        """Returns the next event of this type."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                event = await self.connection.recv()
                self.events.append(event)
                if event.type == type:
                    return event

    async def update(self, **session: Any) -> Any:
        wanted: Any = {"type": "realtime", **session}
        await self.connection.session.update(session=wanted)
        return await self.until("session.updated")

    async def write(self, text: str) -> None:
        await self.connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        )

    async def ask(self, text: str) -> Any:
        await self.write(text)
        await self.connection.response.create()
        return (await self.until("response.done")).response

    async def speak(self, ms: int) -> None:
        for _ in range(ms // 100):
            await self.connection.input_audio_buffer.append(audio=FRAME)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def audio_ms(self) -> float:
        pcm = b"".join(base64.b64decode(e.delta) for e in self.events if e.type == "response.output_audio.delta")
        return len(pcm) / 48


@asynccontextmanager
async def talking(served: Served, *, key: str = "sk-anything", base: str = "/v1") -> AsyncIterator[Conversation]:
    async with (
        AsyncOpenAI(api_key=key, websocket_base_url=f"ws://127.0.0.1:{served.port}{base}") as client,
        client.realtime.connect(model="gpt-realtime-2") as connection,
    ):
        conversation = Conversation(connection)
        created = await conversation.until("session.created")
        assert created.session.model == "gpt-realtime-2"
        yield conversation


def words(response: Any) -> str:
    """What a response says."""
    content = response.output[-1].content[0]
    return str(content.transcript or content.text).strip()


@pytest.fixture(scope="module")
def text_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without a voice, with the offline assistant."""
    folder = tmp_path_factory.mktemp("text")
    write_garden(folder)
    with serve(folder) as served:
        yield served


@pytest.mark.parametrize("base", ["/v1", "/openai/v1"])
async def test_a_typed_question_is_answered_by_a_tool_of_the_server(text_server: Served, base: str) -> None:
    async with talking(text_server, base=base) as conversation:
        response = await conversation.ask("What is 17 times 3?")
    assert response.status == "completed"
    assert "51" in words(response)
    assert [item.type for item in response.output] == ["message"]


async def test_the_conversation_is_in_the_history_of_the_server(text_server: Served) -> None:
    async with talking(text_server) as conversation:
        response = await conversation.ask("What is 6 times 7?")
    id = response.conversation_id.removeprefix("conv_")
    async with httpx2.AsyncClient(base_url=text_server.http) as http:
        turns = (await http.get(f"/api/conversations/{id}")).json()["turns"]
    said = [turn["message"].get("text", "") for turn in turns if turn["message"]["role"] != "tool"]
    assert said[0] == "What is 6 times 7?"
    assert "42" in said[-1]


async def test_a_tool_that_needs_approval_runs_after_a_yes(text_server: Served) -> None:
    async with talking(text_server) as conversation:
        question = await conversation.ask("Please water the garden")
        assert not list(text_server.log_path.parent.rglob("watered"))
        answer = await conversation.ask("Yes")
    assert "water" in words(question).lower()
    assert words(answer)
    assert list(text_server.log_path.parent.rglob("watered"))


async def test_a_bad_event_is_an_error_and_the_session_goes_on(text_server: Served) -> None:
    async with talking(text_server) as conversation:
        await conversation.connection.send_raw('{"type": "no.such.event", "event_id": "mine"}')
        error = (await conversation.until("error")).error
        assert (error.type, error.code, error.event_id) == ("invalid_request_error", "invalid_value", "mine")
        await conversation.connection.send_raw("not JSON")
        assert (await conversation.until("error")).error.code == "invalid_json"
        await conversation.connection.send_raw(
            '{"type": "session.update", "session": {"type": "realtime", "temperature": 1}}'
        )
        error = (await conversation.until("error")).error
        assert (error.code, error.param) == ("unknown_parameter", "session.temperature")
        await conversation.connection.response.cancel()
        assert (await conversation.until("error")).error.code == "response_cancel_not_active"
        assert "51" in words(await conversation.ask("What is 17 times 3?"))


async def test_the_clients_instructions_are_accepted_and_shown(text_server: Served) -> None:
    async with talking(text_server) as conversation:
        updated = await conversation.update(instructions="Be kind.")
    assert updated.session.instructions == "Be kind."


async def test_a_wrong_key_is_refused_at_the_upgrade(locked: Served, tokens: dict[str, str]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with talking(locked, key="sk-wrong"):
            pass
    assert refused.value.response.status_code == 401
    error = json.loads(refused.value.response.body or b"")["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    async with talking(locked, key=tokens["ann"]) as conversation:
        assert "51" in words(await conversation.ask("What is 17 times 3?"))


async def test_a_browser_sends_its_key_as_a_subprotocol(locked: Served, tokens: dict[str, str]) -> None:
    offered = [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{tokens['ann']}")]
    async with connect(f"ws://127.0.0.1:{locked.port}/v1/realtime", subprotocols=offered) as socket:
        assert json.loads(await socket.recv())["type"] == "session.created"
        assert socket.subprotocol == "realtime"


async def test_an_azure_client_sends_its_key_in_a_header_of_its_own(locked: Served, tokens: dict[str, str]) -> None:
    address = f"ws://127.0.0.1:{locked.port}/openai/v1/realtime?model=mine"
    async with connect(address, additional_headers={"api-key": tokens["ann"]}) as socket:
        assert json.loads(await socket.recv())["session"]["model"] == "mine"


async def test_too_many_connections_are_refused_at_the_upgrade(tmp_path: Path) -> None:
    with serve(tmp_path, limits={Kind.CONNECTION: Limit(address=Rate(0.01, 1))}) as served:
        async with talking(served):
            with pytest.raises(InvalidStatus) as refused:
                async with talking(served):
                    pass
    assert refused.value.response.status_code == 429
    assert int(refused.value.response.headers["Retry-After"]) > 0


async def test_a_page_of_another_origin_is_refused(text_server: Served) -> None:
    async with AsyncOpenAI(
        api_key="x",
        websocket_base_url=f"ws://127.0.0.1:{text_server.port}/v1",
        default_headers={"Origin": "https://evil.example"},
    ) as client:
        with pytest.raises(InvalidStatus) as refused:
            async with client.realtime.connect(model="m", extra_headers={"Origin": "https://evil.example"}):
                pass
    assert refused.value.response.status_code == 403


async def test_speech_is_answered_aloud(tmp_path: Path) -> None:
    with serve(tmp_path, voice=[Hear("What time is it?"), Say("It is noon.", audio_ms=900)]) as served:
        async with talking(served) as conversation:
            await conversation.update(audio={"input": {"transcription": {"model": "gpt-transcribe"}}})
            await conversation.speak(2_000)
            heard = await conversation.until("conversation.item.input_audio_transcription.completed")
            response = (await conversation.until("response.done")).response
    assert heard.transcript == "What time is it?"
    assert words(response) == "It is noon."
    assert conversation.audio_ms == pytest.approx(900, abs=5)
    order = ["speech_started", "speech_stopped", "committed"]
    assert [each for each in conversation.types if each.startswith("input_audio_buffer")] == [
        f"input_audio_buffer.{each}" for each in order
    ]
    assert served.failures == []


async def test_a_function_of_the_client_is_called_and_its_result_is_said(tmp_path: Path) -> None:
    script: list[Step] = [
        Hear("How is the weather in Oslo?"),
        Call("get_tides", {"city": "Oslo"}, id="provider-1234"),
        Say("It is cold."),
    ]
    with serve(tmp_path, voice=script) as served:
        async with talking(served) as conversation:
            await conversation.update(tools=[WEATHER], tool_choice="auto")
            await conversation.speak(2_000)
            (call,) = (await conversation.until("response.done")).response.output
            assert (call.type, call.name, json.loads(call.arguments)) == (
                "function_call",
                "get_tides",
                {"city": "Oslo"},
            )
            await conversation.connection.conversation.item.create(
                item={"type": "function_call_output", "call_id": call.call_id, "output": '{"temp": 3}'}
            )
            await conversation.connection.response.create()
            response = (await conversation.until("response.done")).response
    assert words(response) == "It is cold."


async def test_speech_over_the_answer_is_told_and_the_answer_is_cut(tmp_path: Path) -> None:
    script: list[Step] = [LONG, Barge(300), Hear("Stop", after_ms=2_000), Say("All right.")]
    with serve(tmp_path, voice=script) as served:
        async with talking(served) as conversation:
            await conversation.speak(100)
            await conversation.write("Count")
            await conversation.connection.response.create()
            await conversation.until("input_audio_buffer.speech_started")
            if "response.done" not in conversation.types:
                # All of the answer may have been sent by then, and be playing.
                cancelled = (await conversation.until("response.done")).response
                assert (cancelled.status, cancelled.status_details.reason) == ("cancelled", "turn_detected")
            item = next(e.item.id for e in conversation.events if e.type == "response.output_item.added")
            await conversation.connection.conversation.item.truncate(item_id=item, content_index=0, audio_end_ms=400)
            await conversation.until("conversation.item.truncated")
            await conversation.speak(2_500)
            answer = (await conversation.until("response.done")).response
        async with httpx2.AsyncClient(base_url=served.http) as http:
            id = answer.conversation_id.removeprefix("conv_")
            turns = (await http.get(f"/api/conversations/{id}")).json()["turns"]
    assert words(answer) == "All right."
    assert [turn["message"]["text"] for turn in turns] == ["Count", "One,", "Stop", "All right."]


async def test_a_client_commits_its_turn_and_asks_for_the_answer(tmp_path: Path) -> None:
    with serve(tmp_path, voice=[Hear("Hello", after_ms=60_000), Say("Hi.")]) as served:
        async with talking(served) as conversation:
            await conversation.update(audio={"input": {"turn_detection": None}})
            await conversation.connection.input_audio_buffer.commit()
            assert (await conversation.until("error")).error.code == "input_audio_buffer_commit_empty"
            await conversation.speak(1_000)
            await conversation.connection.input_audio_buffer.commit()
            committed = await conversation.until("input_audio_buffer.committed")
            added = await conversation.until("conversation.item.added")
            assert added.item.id == committed.item_id
            await conversation.connection.response.create()
            response = (await conversation.until("response.done")).response
    assert words(response) == "Hi."


async def test_a_frame_of_a_megabyte_is_taken_and_a_longer_one_than_the_limit_closes(tmp_path: Path) -> None:
    with serve(tmp_path, voice=[Hear("Hello", after_ms=15_000), Say("Hi.")]) as served:
        async with talking(served) as conversation:
            await conversation.connection.input_audio_buffer.append(audio=base64.b64encode(bytes(768_000)).decode())
            await conversation.speak(1_000)
            assert words((await conversation.until("response.done")).response) == "Hi."
            await conversation.connection.send_raw(" " * (3 << 20))
            with pytest.raises(Exception, match="1009"):
                await conversation.until("nothing")
