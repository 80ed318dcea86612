"""A client of the first protocol version: its session follows the example of that version."""

import asyncio
import base64
import io
import json
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.fakes.scripted_live import Call, Hear, Say
from tests.fakes.toolbox import document, write_tool
from tests.wire.caller import Message
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

QUESTION: Final = "What's the weather?"
ANSWER: Final = "Let me check. It's 65 degrees, and sunny."
AUDIO_MS: Final = 300 + 700
SPEECH: Final = bytes(2 * 16 * 20)
"""Twenty milliseconds of microphone audio."""
VOICE: Final = (
    *(Hear(QUESTION), Say("Let me check.", audio_ms=300, goes_on=True)),
    *(Call("get_weather", {"location": "here"}), Say(" It's 65 degrees, and sunny.", audio_ms=700)),
    *(Hear("Thanks."), Say("You are welcome.", audio_ms=600)),
)

GET_WEATHER: Final = """\
from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    return ok({"temperature": 65, "condition": "sunny"}, spoken="It's 65 degrees, and sunny.")
"""
LOCATION: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["location"],
    "properties": {"location": {"type": "string", "minLength": 1, "maxLength": 80, "description": "Where."}},
}

# Every field of a message that such a client may read, and the kind of its value.
SHAPES: Final[dict[str, dict[str, type | tuple[type, ...]]]] = {
    "state": {"state": str},
    "transcript": {"text": str, "is_final": bool},
    "response_chunk": {"text": str, "is_first": bool},
    "response": {"text": str},
    "audio": {"data": str},
    "tool_call": {"name": str, "args": dict},
    "tool_result": {"name": str, "result": dict},
}


@pytest.fixture(scope="module")
def voice_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("served")
    files = {"handler.py": GET_WEATHER, "doc.md": document("get_weather", '{"location": "here"}')}
    write_tool(folder / "tools", "get_weather", parameters=LOCATION, files=files)
    with serve(folder, voice=VOICE) as served:
        yield served.url


class SeedClient:
    """Written from the first version's description alone."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.received: list[Message] = []

    async def receive(self) -> Message:
        message: Message = json.loads(await asyncio.wait_for(self.socket.recv(), 10))
        self.received.append(message)
        return message

    async def wait_for(self, state: str) -> None:
        while await self.receive() != {**self.received[-1], "type": "state", "state": state}:
            pass

    async def send(self, type: str) -> None:
        await self.socket.send(json.dumps({"type": type}))

    async def speak(self, frames: int = 45) -> None:
        for _ in range(frames):
            await self.socket.send(b"\x00" + SPEECH)
            await asyncio.sleep(0.005)

    async def play(self) -> None:
        """Plays the received audio in real time, and reports it as played."""
        await asyncio.sleep(sum(duration_s(message) for message in of(self.received, "audio")))
        await self.send("playback_done")


def of(messages: list[Message], type: str) -> list[Message]:
    return [message for message in messages if message["type"] == type]


def states(messages: list[Message]) -> list[str]:
    return [message["state"] for message in of(messages, "state")]


def places(messages: list[Message], type: str) -> list[int]:
    return [place for place, message in enumerate(messages) if message["type"] == type]


def open_wav(message: Message) -> wave.Wave_read:
    file = io.BytesIO(base64.b64decode(message["data"], validate=True))
    return wave.open(file, "rb")


def duration_s(message: Message) -> float:
    with open_wav(message) as sound:
        return sound.getnframes() / sound.getframerate()


async def example(url: str) -> list[Message]:
    async with connect(url) as socket:
        client = SeedClient(socket)
        await client.wait_for("idle")
        await client.send("start_listening")
        await client.wait_for("listening")
        await client.speak()
        await client.wait_for("speaking")
        while not of(client.received, "response"):
            await client.receive()
        await client.play()
        await client.wait_for("listening")
        return client.received


@pytest.fixture(scope="module")
def received(voice_url: str) -> list[Message]:
    """All messages sent to the client of the example."""
    return asyncio.run(example(voice_url))


def test_the_first_message_is_the_state_idle(received: list[Message]) -> None:
    assert received[0] == {"type": "state", "state": "idle", "n": 1}


def test_the_states_come_in_the_order_of_the_example(received: list[Message]) -> None:
    assert states(received) == ["idle", "listening", "processing", "speaking", "listening"]


def test_every_field_of_the_first_version_is_present(received: list[Message]) -> None:
    for type, fields in SHAPES.items():
        found = of(received, type)
        assert found, f"no {type} was sent"
        for message in found:
            for field, kind in fields.items():
                assert isinstance(message.get(field), kind), f"{field} of {message}"


def test_messages_are_numbered_from_one_without_a_gap(received: list[Message]) -> None:
    assert [message["n"] for message in received] == list(range(1, len(received) + 1))


def test_the_final_transcript_comes_once_and_after_the_state_processing(received: list[Message]) -> None:
    finals = [message for message in of(received, "transcript") if message["is_final"]]
    assert [message["text"] for message in finals] == [QUESTION]
    assert received.index(finals[0]) > received.index(next(m for m in received if m.get("state") == "processing"))


def test_interim_transcripts_come_before_the_final_one(received: list[Message]) -> None:
    assert [message["is_final"] for message in of(received, "transcript")] == [False, True]


def test_only_the_first_chunk_is_marked_first(received: list[Message]) -> None:
    chunks = of(received, "response_chunk")
    assert [chunk["is_first"] for chunk in chunks] == [True] + [False] * (len(chunks) - 1)
    assert len(chunks) > 1


def test_the_response_is_its_chunks_and_comes_after_them(received: list[Message]) -> None:
    (response,) = of(received, "response")
    assert response["text"] == "".join(chunk["text"] for chunk in of(received, "response_chunk")) == ANSWER
    assert received.index(response) > places(received, "response_chunk")[-1]


def test_a_tool_call_is_shown_before_its_result_and_between_the_chunks(received: list[Message]) -> None:
    (called,), (result,) = places(received, "tool_call"), places(received, "tool_result")
    chunks = places(received, "response_chunk")
    assert chunks[0] < called < result < chunks[-1]


def test_a_tool_call_has_its_arguments_and_a_tool_result_its_data(received: list[Message]) -> None:
    (called,), (result,) = of(received, "tool_call"), of(received, "tool_result")
    assert (called["name"], called["args"]) == ("get_weather", {"location": "here"})
    assert (result["name"], result["result"]) == ("get_weather", {"temperature": 65, "condition": "sunny"})


def test_audio_comes_only_in_the_speaking_state(received: list[Message]) -> None:
    speaking = received.index(next(m for m in received if m.get("state") == "speaking"))
    assert speaking < places(received, "audio")[0]
    assert places(received, "audio")[-1] < len(received) - 1


def test_audio_is_a_22050_hz_mono_16_bit_wav(received: list[Message]) -> None:
    for message in of(received, "audio"):
        with open_wav(message) as sound:
            assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (22_050, 1, 2)
            assert sound.getnframes() > 0


def test_the_whole_answer_is_audible(received: list[Message]) -> None:
    total_ms = 1000 * sum(duration_s(message) for message in of(received, "audio"))
    assert total_ms == pytest.approx(AUDIO_MS, abs=2)


async def test_a_client_may_send_playback_done_after_every_clip(voice_url: str) -> None:
    async with connect(voice_url) as socket:
        client = SeedClient(socket)
        await client.send("start_listening")
        await client.wait_for("listening")
        await client.speak()
        played_s = 0.0
        while not of(client.received, "response") or played_s < AUDIO_MS / 1000 - 0.01:
            message = await client.receive()
            if message["type"] == "audio":
                await asyncio.sleep(duration_s(message))
                played_s += duration_s(message)
                await client.send("playback_done")
        await client.wait_for("listening")
        assert states(client.received) == ["idle", "listening", "processing", "speaking", "listening"]


async def test_one_turn_follows_another(voice_url: str) -> None:
    async with connect(voice_url) as socket:
        client = SeedClient(socket)
        await client.send("start_listening")
        for _ in range(2):
            await client.wait_for("listening")
            await client.speak()
            while not of(client.received, "response"):
                await client.receive()
            await client.play()
            client.received.clear()
        await client.wait_for("listening")
        assert states(client.received)[-1] == "listening"


async def test_an_interrupt_is_acknowledged_and_listening_resumes(voice_url: str) -> None:
    async with connect(voice_url) as socket:
        client = SeedClient(socket)
        await client.send("start_listening")
        await client.wait_for("listening")
        await client.speak()
        await client.wait_for("speaking")
        await client.send("interrupt")
        await client.wait_for("listening")
        assert states(client.received)[-3:] == ["speaking", "interrupted", "listening"]


async def test_stop_listening_without_speech_leads_to_idle(voice_url: str) -> None:
    async with connect(voice_url) as socket:
        client = SeedClient(socket)
        await client.send("start_listening")
        await client.wait_for("listening")
        await client.send("stop_listening")
        await client.wait_for("idle")
        assert states(client.received) == ["idle", "listening", "idle"]


async def test_stop_listening_with_speech_processes_it(voice_url: str) -> None:
    async with connect(voice_url) as socket:
        client = SeedClient(socket)
        await client.send("start_listening")
        await client.wait_for("listening")
        await client.speak(frames=25)
        await client.send("stop_listening")
        await client.wait_for("speaking")
        assert [message["text"] for message in of(client.received, "transcript") if message["is_final"]] == [QUESTION]
        while not of(client.received, "response"):
            await client.receive()
        await client.play()
        await client.wait_for("idle")
        assert states(client.received)[-3:] == ["processing", "speaking", "idle"]
