"""The translation of OpenAI's Realtime events to a session, on the virtual clock."""

import asyncio
import binascii
import json
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.gateway.realtime_conversation import RealtimeConversation
from antiphon.gateway.realtime_events import RealtimeError, decode
from antiphon.gateway.realtime_settings import AUDIO, TEXT, RealtimeSettings
from antiphon.gateway.session import GatewaySession, Opening
from antiphon.models.live import SpeechStarted
from antiphon.protocol.closing import Close
from antiphon.tools.call import ToolCall
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.calls import LoopClock, ScriptedServers, Server
from tests.fakes.gates import Counted, make_tool
from tests.fakes.gateway import ANN, gateway_deps
from tests.fakes.scripted_live import WAITING, Barge, Call, Fail, Hear, Say, Stall, Use

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Gets the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Client:
    """A client without a socket."""

    def __init__(self, server: Server) -> None:
        self.events: list[dict[str, Any]] = []
        deps = gateway_deps(server)
        settings = RealtimeSettings(model="m", modality=AUDIO if server.hub.has_voice else TEXT)
        self.conversation = RealtimeConversation(deps, settings, emit=self._emit, close=self._close)

    @classmethod
    async def enter(cls, server: Server, **session: Any) -> "Client":
        client = cls(server)
        conversation = client.conversation
        mode = Mode.VOICE if server.hub.has_voice else Mode.TEXT
        conversation.session = await GatewaySession.open(gateway_deps(server), ANN, Opening(mode=mode), conversation)
        conversation.begin()
        if session:
            client.update(**session)
        return client

    def _emit(self, type: str, **fields: Any) -> None:
        self.events.append(json.loads(json.dumps({"type": type, **fields})))

    def _close(self, close: Close) -> None:
        raise AssertionError(f"the endpoint has failed: {close}")

    def send(self, type: str, **fields: Any) -> None:
        self.conversation.take(decode(json.dumps({"type": type, **fields})))

    def update(self, **session: Any) -> None:
        self.send("session.update", session={"type": "realtime", **session})

    def write(self, text: str, role: str = "user") -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self.send("conversation.item.create", item=item)

    async def ask(self, text: str, seconds: float = 5) -> dict[str, Any]:
        """Types a message, asks for a response and returns it."""
        self.write(text)
        self.send("response.create")
        await asyncio.sleep(seconds)
        return self.last_response

    async def ask_again(self) -> None:
        self.send("response.create")
        await asyncio.sleep(5)

    async def speak(self, seconds: float) -> None:
        for _ in range(round(seconds * 50)):
            self.append(b"\0" * 960)
            await asyncio.sleep(0.02)

    def append(self, pcm: bytes) -> None:
        self.send("input_audio_buffer.append", audio=binascii.b2a_base64(pcm, newline=False).decode())

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def every(self, type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == type]

    def last(self, type: str) -> dict[str, Any]:
        return self.every(type)[-1]

    @property
    def last_response(self) -> dict[str, Any]:
        return dict(self.last("response.done")["response"])

    @property
    def transcript(self) -> str:
        """What the last response says."""
        content = self.last_response["output"][-1]["content"][0]
        return str(content.get("transcript", content.get("text"))).strip()

    @property
    def audio_ms(self) -> float:
        deltas = self.every("response.output_audio.delta")
        return sum(len(binascii.a2b_base64(event["delta"])) for event in deltas) / 48


def refusal(action: Any, *args: Any, **kwargs: Any) -> RealtimeError:
    with pytest.raises(RealtimeError) as caught:
        action(*args, **kwargs)
    return caught.value


async def stored(server: Server, client: Client) -> list[str]:
    turns = await server.database.conversations.turns(client.conversation.session.conversation_id)
    return [turn.text.strip() for turn in turns]


SPOKEN_RESPONSE = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "conversation.item.done",
    "response.output_item.done",
    "response.done",
]


def once_each(types: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(types))


async def test_a_session_is_described_when_it_begins(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[]))
    session = client.last("session.created")["session"]
    assert (session["object"], session["type"], session["output_modalities"]) == (
        "realtime.session",
        "realtime",
        ["audio"],
    )
    assert session["audio"]["input"]["turn_detection"]["type"] == "server_vad"
    assert session["id"].startswith("sess_")


async def test_a_server_without_a_voice_answers_in_text(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Hello."]))
    assert client.last("session.created")["session"]["output_modalities"] == ["text"]
    await client.ask("Hi")
    assert client.transcript == "Hello."
    assert refusal(client.update, output_modalities=["audio"]).param == "session.output_modalities"
    assert refusal(client.append, b"\0\0").param == "audio"


async def test_a_typed_question_is_answered_aloud_in_the_vendors_order(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[Use(12, 3), Say("It is noon.", audio_ms=1_500)]))
    response = await client.ask("What time is it?")
    begun = client.types.index("response.created")
    assert once_each(client.types[begun:]) == SPOKEN_RESPONSE
    assert client.audio_ms == pytest.approx(1_500, abs=5)
    assert client.transcript == "It is noon."
    assert (response["status"], response["usage"]["total_tokens"]) == ("completed", 15)
    added = client.every("conversation.item.added")
    assert [event["item"]["role"] for event in added] == ["user", "assistant"]
    assert added[1]["previous_item_id"] == added[0]["item"]["id"]


async def test_a_response_in_text_has_no_audio(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Noon."], voice=[]), output_modalities=["text"])
    await client.ask("What time is it?")
    assert client.transcript == "Noon."
    assert "response.output_text.delta" in client.types
    assert client.audio_ms == 0


async def test_speech_is_detected_committed_transcribed_and_answered(servers: ScriptedServers) -> None:
    client = await Client.enter(
        servers.open(voice=[Hear("What time is it?"), Say("Noon.")]),
        audio={"input": {"transcription": {"model": "m"}}},
    )
    await client.speak(2)
    await asyncio.sleep(3)
    begun = client.types.index("input_audio_buffer.speech_started")
    assert client.types[begun : begun + 5] == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    heard = client.last("conversation.item.input_audio_transcription.completed")
    assert heard["transcript"] == "What time is it?"
    assert heard["item_id"] == client.last("input_audio_buffer.committed")["item_id"]
    assert client.transcript == "Noon."
    client.send("conversation.item.retrieve", item_id=heard["item_id"])
    item = client.last("conversation.item.retrieved")["item"]
    assert item["content"] == [{"type": "input_audio", "transcript": "What time is it?"}]


async def test_speech_is_told_when_it_begins_and_a_noise_is_told_to_have_ended(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[]))
    client.conversation.on_effect(SpeechStarted("t1"))
    client.conversation.on_effect(SpeechStarted("t1"))
    assert client.types[1:] == ["input_audio_buffer.speech_started"]
    client.conversation.on_effect(SpeechStarted("t2"))
    assert client.types[2:] == ["input_audio_buffer.speech_stopped", "input_audio_buffer.speech_started"]
    noise, speech = (event["item_id"] for event in client.every("input_audio_buffer.speech_started"))
    assert noise != speech
    assert client.last("input_audio_buffer.speech_stopped")["item_id"] == noise


async def test_without_transcription_the_client_is_not_told_the_words(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[Hear("What time is it?"), Say("Noon.")]))
    await client.speak(2)
    await asyncio.sleep(3)
    assert client.transcript == "Noon."
    assert not client.every("conversation.item.input_audio_transcription.completed")


async def test_speech_over_an_answer_that_is_being_played_is_told_at_once(servers: ScriptedServers) -> None:
    counting = Say("One two three four five six seven eight.", audio_ms=8_000)
    server = servers.open(voice=[counting, Barge(1_000), Hear("Stop", after_ms=2_500), Say("All right.")])
    client = await Client.enter(server)
    client.write("Count")
    client.send("response.create")
    await client.speak(4)
    await asyncio.sleep(3)
    assert client.types.count("input_audio_buffer.speech_started") == 1
    assert client.transcript == "All right."
    assert await stored(server, client) == ["Count", "One", "Stop", "All right."]


async def test_speech_before_the_answer_is_complete_cancels_the_response(servers: ScriptedServers) -> None:
    thinking = Say("One two three.", first_audio_ms=60_000)
    server = servers.open(voice=[thinking, Hear("Stop", after_ms=400, over=True), Say("All right.")])
    client = await Client.enter(server)
    client.write("Count")
    client.send("response.create")
    await client.speak(3)
    await asyncio.sleep(3)
    first, second = (event["response"] for event in client.every("response.done"))
    assert (first["status"], first["status_details"]["reason"]) == ("cancelled", "turn_detected")
    started, done = client.types.index("input_audio_buffer.speech_started"), client.types.index("response.done")
    assert started < done
    assert second["status"] == "completed"
    assert client.transcript == "All right."


async def test_a_client_cancels_its_response(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[Say("A very long answer.", first_audio_ms=60_000)]))
    assert refusal(client.send, "response.cancel").error_code == "response_cancel_not_active"
    client.write("Talk")
    client.send("response.create")
    await asyncio.sleep(1)
    client.send("response.cancel")
    await asyncio.sleep(1)
    response = client.last_response
    assert (response["status"], response["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    assert "input_audio_buffer.speech_started" not in client.types


async def test_only_one_response_at_a_time(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[Say("Yes.", audio_ms=2_000)]))
    client.write("Are you there?")
    client.send("response.create")
    assert refusal(client.send, "response.create").error_code == "conversation_already_has_active_response"
    await asyncio.sleep(4)
    assert client.transcript == "Yes."


async def test_a_client_commits_its_turns_itself(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("What time is it?", after_ms=10_000), Say("Noon.")])
    client = await Client.enter(server, audio={"input": {"turn_detection": None, "transcription": {"model": "m"}}})
    assert refusal(client.send, "input_audio_buffer.commit").error_code == "input_audio_buffer_commit_empty"
    client.append(b"\0" * 48_000)
    await asyncio.sleep(2)
    client.send("input_audio_buffer.commit")
    await asyncio.sleep(2)
    assert not client.every("response.created")
    client.send("response.create")
    await asyncio.sleep(3)
    assert client.transcript == "Noon."
    committed = client.last("input_audio_buffer.committed")["item_id"]
    heard = client.last("conversation.item.input_audio_transcription.completed")
    assert (heard["item_id"], heard["transcript"]) == (committed, "What time is it?")
    assert "input_audio_buffer.speech_started" not in client.types


async def test_a_cleared_buffer_cannot_be_committed(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[]), audio={"input": {"turn_detection": None}})
    client.append(b"\0" * 48_000)
    client.send("input_audio_buffer.clear")
    assert client.types[-1] == "input_audio_buffer.cleared"
    assert refusal(client.send, "input_audio_buffer.commit").error_code == "input_audio_buffer_commit_empty"


async def test_a_client_that_creates_no_responses_asks_for_them(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("What time is it?"), Say("Noon.")], profile=WAITING)
    client = await Client.enter(
        server, audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}
    )
    await client.speak(2)
    await asyncio.sleep(3)
    assert client.every("input_audio_buffer.committed")
    assert not client.every("response.created")
    client.send("response.create")
    await asyncio.sleep(3)
    assert client.transcript == "Noon."


async def test_a_model_that_answers_by_itself_cannot_be_held_back(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[]))
    detection = {"type": "server_vad", "create_response": False}
    error = refusal(client.update, audio={"input": {"turn_detection": detection}})
    assert error.param == "session.audio.input.turn_detection.create_response"


async def test_a_clients_function_is_called_and_its_result_is_used(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Call("get_weather", {"city": "Oslo"}, id="provider-1234"), Say("It is cold.", audio_ms=500)]
    )
    client = await Client.enter(server, tools=[WEATHER])
    response = await client.ask("How is the weather in Oslo?")
    (call,) = response["output"]
    assert (response["status"], call["type"], call["name"], call["status"]) == (
        "completed",
        "function_call",
        "get_weather",
        "completed",
    )
    assert json.loads(call["arguments"]) == {"city": "Oslo"}
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"temp": 3}'}
    client.send("conversation.item.create", item=output)
    await asyncio.sleep(2)
    assert len(client.every("response.created")) == 1
    client.send("response.create")
    await asyncio.sleep(3)
    assert client.transcript == "It is cold."
    assert servers.voice.results[0].content == {"temp": 3}


async def test_two_calls_of_one_message_are_in_one_response(servers: ScriptedServers) -> None:
    calls = [ToolCall(f"call-00{city}", "get_weather", {"city": city}) for city in ("Oslo", "Rome")]
    server = servers.open(text=[calls, "Cold and warm."])
    client = await Client.enter(server, tools=[WEATHER])
    response = await client.ask("Compare Oslo and Rome")
    assert [json.loads(item["arguments"])["city"] for item in response["output"]] == ["Oslo", "Rome"]
    for item in response["output"]:
        output = {"type": "function_call_output", "call_id": item["call_id"], "output": "cold"}
        client.send("conversation.item.create", item=output)
    client.send("response.create")
    await asyncio.sleep(3)
    assert client.transcript == "Cold and warm."
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert [result.content for result in results] == ["cold", "cold"]


async def test_a_call_that_the_gate_refuses_is_not_sent(servers: ScriptedServers) -> None:
    server = servers.open(text=[[ToolCall("call-11111", "get_weather", {"town": 1})], "Sorry."])
    client = await Client.enter(server, tools=[WEATHER])
    await client.ask("How is the weather?")
    assert client.transcript == "Sorry."
    assert "response.function_call_arguments.done" not in client.types


async def test_the_servers_own_tools_run_inside_a_response(servers: ScriptedServers) -> None:
    handler = Counted()
    server = servers.open(make_tool("read_it", handler), text=[[ToolCall("call-11111", "read_it", {})], "Done."])
    client = await Client.enter(server)
    response = await client.ask("Read it")
    assert handler.runs == 1
    assert [item["type"] for item in response["output"]] == ["message"]


async def test_a_result_that_no_response_is_asked_for_is_known_in_the_next_turn(servers: ScriptedServers) -> None:
    server = servers.open(text=[[ToolCall("call-11111", "get_weather", {"city": "Oslo"})], "It was cold."])
    client = await Client.enter(server, tools=[WEATHER])
    response = await client.ask("How is the weather in Oslo?")
    output = {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "cold"}
    client.send("conversation.item.create", item=output)
    await asyncio.sleep(30)
    await client.ask("And?")
    assert client.transcript == "It was cold."
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert [result.content for result in results] == ["cold"]


async def test_a_name_of_the_servers_tools_is_refused(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(make_tool("get_weather", Counted()), text=[]))
    error = refusal(client.update, tools=[WEATHER])
    assert (error.error_code, error.param) == ("invalid_value", "session.tools")
    assert client.conversation.session.state.turns == 0


async def test_earlier_items_are_the_history_of_the_conversation(servers: ScriptedServers) -> None:
    server = servers.open(text=["Blue."])
    client = await Client.enter(server)
    client.write("My colour is blue.")
    client.write("Noted.", role="assistant")
    client.write("Answer in one word.", role="system")
    await client.ask("Which colour?")
    prompt = servers.script.prompts[-1]
    assert prompt.messages == (
        UserMessage("My colour is blue."),
        AssistantMessage("Noted."),
        UserMessage("Which colour?"),
    )
    assert prompt.system.rstrip().endswith("Answer in one word.")
    assert await stored(server, client) == ["My colour is blue.", "Noted.", "Which colour?", "Blue."]


async def test_earlier_calls_of_the_clients_functions_are_part_of_the_history(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Cold."]))
    client.write("How is the weather in Oslo?")
    call = {"type": "function_call", "call_id": "call_A", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
    client.send("conversation.item.create", item=call)
    output = {"type": "function_call_output", "call_id": "call_A", "output": "cold"}
    client.send("conversation.item.create", item=output)
    await client.ask("And now?")
    messages = servers.script.prompts[-1].messages
    assert [type(message) for message in messages] == [UserMessage, AssistantMessage, ToolMessage, UserMessage]


async def test_instructions_of_one_response_hold_for_it_alone(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Hoy.", "Hello."]), instructions="Be polite.")
    client.write("Hi")
    client.send("response.create", response={"instructions": "Talk like a pirate.", "metadata": {"k": "v"}})
    await asyncio.sleep(2)
    assert client.last_response["metadata"] == {"k": "v"}
    await client.ask("Hi again")
    first, second = servers.script.prompts
    assert "pirate" in first.system
    assert "pirate" not in second.system
    assert "Be polite." in second.system


async def test_a_response_without_new_input_answers_the_conversation(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Welcome."]), instructions="Greet the user.")
    client.send("response.create")
    await asyncio.sleep(2)
    assert client.transcript == "Welcome."


async def test_a_truncated_answer_is_stored_as_far_as_it_was_heard(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("One two three four.", audio_ms=4_000)])
    client = await Client.enter(server)
    response = await client.ask("Count", seconds=1.5)
    item = response["output"][0]["id"]
    assert refusal(client.send, "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=9_000)
    client.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=2_000)
    await asyncio.sleep(1)
    assert client.last("conversation.item.truncated")["audio_end_ms"] == 2_000
    assert await stored(server, client) == ["Count", "One two"]


async def test_an_answer_can_be_truncated_after_it_was_played(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("One two three four.", audio_ms=1_000)])
    client = await Client.enter(server)
    response = await client.ask("Count", seconds=5)
    item = response["output"][0]["id"]
    client.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=500)
    await asyncio.sleep(1)
    assert await stored(server, client) == ["Count", "One two"]


async def test_an_item_that_no_response_has_used_can_be_deleted(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Yes."]))
    client.write("Never mind this.")
    id = client.last("conversation.item.added")["item"]["id"]
    client.send("conversation.item.delete", item_id=id)
    assert client.types[-1] == "conversation.item.deleted"
    await client.ask("Hello?")
    assert servers.script.prompts[-1].messages == (UserMessage("Hello?"),)
    assert refusal(client.send, "conversation.item.delete", item_id=id).error_code == "item_not_found"


async def test_a_model_that_fails_ends_the_response_and_not_the_session(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[Fail("The model is down."), Say("Back again.")]))
    response = await client.ask("Hi")
    assert (response["status"], response["status_details"]["error"]["message"]) == ("failed", "The model is down.")
    await client.ask("Hi again")
    assert client.transcript == "Back again."


async def test_speech_waits_for_a_response_that_may_not_be_interrupted(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Say("A long answer.", audio_ms=3_000), Hear("And then?", after_ms=800), Say("Then nothing.")]
    )
    client = await Client.enter(
        server, audio={"input": {"turn_detection": {"type": "server_vad", "interrupt_response": False}}}
    )
    await client.speak(0.1)
    client.write("Tell me")
    client.send("response.create")
    await client.speak(2)
    await asyncio.sleep(6)
    first, second = (event["response"]["status"] for event in client.every("response.done"))
    assert (first, second) == ("completed", "completed")
    assert client.transcript == "Then nothing."


@pytest.mark.parametrize("format", ["audio/pcmu", "audio/pcma"])
async def test_telephone_audio_is_taken_and_given(servers: ScriptedServers, format: str) -> None:
    audio = {"input": {"format": {"type": format}}, "output": {"format": {"type": format}}}
    client = await Client.enter(servers.open(voice=[Hear("Hello"), Say("Hi.", audio_ms=1_000)]), audio=audio)
    for _ in range(60):
        client.append(b"\x55" * 160)
        await asyncio.sleep(0.02)
    await asyncio.sleep(3)
    assert servers.voice.audio_ms == pytest.approx(1_200, abs=60)
    sent = sum(len(binascii.a2b_base64(event["delta"])) for event in client.every("response.output_audio.delta"))
    assert sent == pytest.approx(8_000, abs=100)


async def test_a_response_that_is_asked_for_before_the_words_are_known_comes_after_them(
    servers: ScriptedServers,
) -> None:
    server = servers.open(voice=[Hear("What time is it?"), Say("Noon.")], profile=WAITING)
    detection = {"type": "server_vad", "create_response": False}
    client = await Client.enter(server, audio={"input": {"turn_detection": detection}})
    while "input_audio_buffer.committed" not in client.types:
        await client.speak(0.02)
    client.send("response.create")
    await asyncio.sleep(3)
    assert client.transcript == "Noon."


async def test_a_user_who_is_blocked_gets_a_failed_response(servers: ScriptedServers) -> None:
    server = servers.open(text=["Never said."])
    client = await Client.enter(server)
    await server.database.blocks.block("ann", LoopClock().now_ms() + 60_000, "be nice")
    response = await client.ask("Hi")
    assert (response["status"], response["status_details"]["error"]["code"]) == ("failed", "blocked")


async def test_no_speech_is_told_when_a_turn_is_given_up_for_lack_of_a_response(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Call("get_weather", {"city": "Oslo"}, id="provider-1234"), Say("It is cold.", audio_ms=500)]
    )
    client = await Client.enter(server, tools=[WEATHER])
    await client.speak(0.2)
    response = await client.ask("How is the weather in Oslo?")
    output = {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "cold"}
    client.send("conversation.item.create", item=output)
    await asyncio.sleep(30)
    assert client.conversation.session.state.turn is None
    assert "input_audio_buffer.speech_started" not in client.types


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (Say("One two three four.", audio_ms=4_000), "One two three four."),
        (Say("One two, three four.", audio_ms=4_000, goes_on=True), "One two"),
    ],
)
async def test_what_was_said_is_stored_when_the_client_leaves(servers: ScriptedServers, answer: Say, kept: str) -> None:
    server = servers.open(voice=[answer, Stall()])
    client = await Client.enter(server)
    client.write("Count")
    client.send("response.create")
    await asyncio.sleep(2.2)
    client.conversation.end()
    client.conversation.session.close(for_good=True)
    await asyncio.sleep(1)
    assert (await stored(server, client))[1].rstrip(",") == kept
    assert not server.hub.sessions


async def test_more_items_than_a_response_can_use_are_refused(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Yes."]))
    for _ in range(500):
        client.write("again")
    assert refusal(client.write, "once more").error_code == "too_many_items"
    await client.ask_again()
    assert client.transcript == "Yes."


async def test_system_items_beyond_the_limit_of_instructions_are_refused(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=[]))
    client.write("x" * 8_000, role="system")
    client.write("x" * 8_000, role="system")
    assert refusal(client.write, "x", role="system").param == "instructions"
    assert refusal(client.update, instructions="x").param == "instructions"


async def test_more_audio_than_a_turn_may_have_is_refused(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(voice=[]), audio={"input": {"turn_detection": None}})
    for _ in range(300):
        client.append(bytes(48_000))
    assert refusal(client.append, bytes(48_000)).error_code == "input_audio_buffer_full"
    client.send("input_audio_buffer.commit")
    client.append(bytes(48_000))
    assert refusal(client.send, "input_audio_buffer.commit").error_code == "input_audio_buffer_full"


async def test_what_was_said_can_be_deleted(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello Ann.", "I don't know."])
    client = await Client.enter(server)
    client.write("Earlier words.", role="assistant")
    await client.ask("I am Ann.")
    for item in [event["item"] for event in client.every("conversation.item.added")]:
        client.send("conversation.item.delete", item_id=item["id"])
    assert client.types.count("conversation.item.deleted") == 3
    await client.ask("Who am I?")
    assert servers.script.prompts[-1].messages == (UserMessage("Who am I?"),)
    assert [text for text in await stored(server, client) if text] == ["Who am I?", "I don't know."]


async def test_a_deleted_system_item_is_no_longer_part_of_the_instructions(servers: ScriptedServers) -> None:
    client = await Client.enter(servers.open(text=["Yes."]))
    client.write("Talk like a pirate.", role="system")
    client.send("conversation.item.delete", item_id=client.last("conversation.item.added")["item"]["id"])
    await client.ask("Hi")
    assert "pirate" not in servers.script.prompts[-1].system


async def test_a_model_with_its_own_context_forgets_what_is_deleted(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("Hello Ann.", audio_ms=300)])
    client = await Client.enter(server)
    await client.ask("I am Ann.")
    servers.next_voice = [Say("I don't know.", audio_ms=300)]
    client.send("conversation.item.delete", item_id=client.every("conversation.item.added")[0]["item"]["id"])
    await client.ask("Who am I?")
    assert client.transcript == "I don't know."
    assert UserMessage("I am Ann.") not in servers.voice.messages


async def test_a_message_without_a_response_is_known_in_the_next_spoken_turn(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Hear("Hello"), Say("Hi.", audio_ms=300), Hear("Who am I?"), Say("Ann.")], profile=WAITING
    )
    client = await Client.enter(server)
    client.write("I am Ann.")
    await client.speak(1.5)
    await asyncio.sleep(3)
    await client.speak(1.5)
    await asyncio.sleep(3)
    assert client.transcript == "Ann."
    assert UserMessage("I am Ann.") in servers.voice.prompts[-1]
