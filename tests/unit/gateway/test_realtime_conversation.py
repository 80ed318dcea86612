"""The translation of OpenAI's Realtime events to a session: speech, responses and their ends."""

import asyncio
import binascii
from collections.abc import Sequence

import pytest

from antiphon.models.live import SpeechStarted
from tests.fakes.calls import LoopClock, ScriptedServers
from tests.fakes.realtime_client import RealtimeClient, refusal, stored
from tests.fakes.scripted_live import WAITING, Barge, Fail, Hear, Say, Stall, Use

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
    client = await RealtimeClient.enter(servers.open(voice=[]))
    session = client.last("session.created")["session"]
    assert (session["object"], session["type"], session["output_modalities"]) == (
        "realtime.session",
        "realtime",
        ["audio"],
    )
    assert session["audio"]["input"]["turn_detection"]["type"] == "server_vad"
    assert session["id"].startswith("sess_")


async def test_a_server_without_a_voice_answers_in_text(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["Hello."]))
    assert client.last("session.created")["session"]["output_modalities"] == ["text"]
    await client.ask("Hi")
    assert client.transcript == "Hello."
    assert refusal(client.update, output_modalities=["audio"]).param == "session.output_modalities"
    assert refusal(client.append, b"\0\0").param == "audio"


async def test_a_typed_question_is_answered_aloud_in_the_vendors_order(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(voice=[Use(12, 3), Say("It is noon.", audio_ms=1_500)]))
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
    client = await RealtimeClient.enter(servers.open(text=["Noon."], voice=[]), output_modalities=["text"])
    await client.ask("What time is it?")
    assert client.transcript == "Noon."
    assert "response.output_text.delta" in client.types
    assert client.audio_ms == 0


async def test_speech_is_detected_committed_transcribed_and_answered(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(
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
    client = await RealtimeClient.enter(servers.open(voice=[]))
    client.conversation.on_effect(SpeechStarted("t1"))
    client.conversation.on_effect(SpeechStarted("t1"))
    assert client.types[1:] == ["input_audio_buffer.speech_started"]
    client.conversation.on_effect(SpeechStarted("t2"))
    assert client.types[2:] == ["input_audio_buffer.speech_stopped", "input_audio_buffer.speech_started"]
    noise, speech = (event["item_id"] for event in client.every("input_audio_buffer.speech_started"))
    assert noise != speech
    assert client.last("input_audio_buffer.speech_stopped")["item_id"] == noise


async def test_without_transcription_the_client_is_not_told_the_words(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(voice=[Hear("What time is it?"), Say("Noon.")]))
    await client.speak(2)
    await asyncio.sleep(3)
    assert client.transcript == "Noon."
    assert not client.every("conversation.item.input_audio_transcription.completed")


async def test_speech_over_an_answer_that_is_being_played_is_told_at_once(servers: ScriptedServers) -> None:
    counting = Say("One two three four five six seven eight.", audio_ms=8_000)
    server = servers.open(voice=[counting, Barge(1_000), Hear("Stop", after_ms=2_500), Say("All right.")])
    client = await RealtimeClient.enter(server)
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
    client = await RealtimeClient.enter(server)
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
    client = await RealtimeClient.enter(servers.open(voice=[Say("A very long answer.", first_audio_ms=60_000)]))
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
    client = await RealtimeClient.enter(servers.open(voice=[Say("Yes.", audio_ms=2_000)]))
    client.write("Are you there?")
    client.send("response.create")
    assert refusal(client.send, "response.create").error_code == "conversation_already_has_active_response"
    await asyncio.sleep(4)
    assert client.transcript == "Yes."


async def test_a_client_commits_its_turns_itself(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("What time is it?", after_ms=10_000), Say("Noon.")])
    client = await RealtimeClient.enter(
        server, audio={"input": {"turn_detection": None, "transcription": {"model": "m"}}}
    )
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
    client = await RealtimeClient.enter(servers.open(voice=[]), audio={"input": {"turn_detection": None}})
    client.append(b"\0" * 48_000)
    client.send("input_audio_buffer.clear")
    assert client.types[-1] == "input_audio_buffer.cleared"
    assert refusal(client.send, "input_audio_buffer.commit").error_code == "input_audio_buffer_commit_empty"


async def test_a_client_that_creates_no_responses_asks_for_them(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("What time is it?"), Say("Noon.")], profile=WAITING)
    client = await RealtimeClient.enter(
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
    client = await RealtimeClient.enter(servers.open(voice=[]))
    detection = {"type": "server_vad", "create_response": False}
    error = refusal(client.update, audio={"input": {"turn_detection": detection}})
    assert error.param == "session.audio.input.turn_detection.create_response"


async def test_a_response_without_new_input_answers_the_conversation(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["Welcome."]), instructions="Greet the user.")
    client.send("response.create")
    await asyncio.sleep(2)
    assert client.transcript == "Welcome."


async def test_a_model_that_fails_ends_the_response_and_not_the_session(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(voice=[Fail("The model is down."), Say("Back again.")]))
    response = await client.ask("Hi")
    assert (response["status"], response["status_details"]["error"]["message"]) == ("failed", "The model is down.")
    await client.ask("Hi again")
    assert client.transcript == "Back again."


async def test_speech_waits_for_a_response_that_may_not_be_interrupted(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Say("A long answer.", audio_ms=3_000), Hear("And then?", after_ms=800), Say("Then nothing.")]
    )
    client = await RealtimeClient.enter(
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
    client = await RealtimeClient.enter(servers.open(voice=[Hear("Hello"), Say("Hi.", audio_ms=1_000)]), audio=audio)
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
    client = await RealtimeClient.enter(server, audio={"input": {"turn_detection": detection}})
    while "input_audio_buffer.committed" not in client.types:
        await client.speak(0.02)
    client.send("response.create")
    await asyncio.sleep(3)
    assert client.transcript == "Noon."


async def test_a_user_who_is_blocked_gets_a_failed_response(servers: ScriptedServers) -> None:
    server = servers.open(text=["Never said."])
    client = await RealtimeClient.enter(server)
    await server.database.blocks.block("ann", LoopClock().now_ms() + 60_000, "be nice")
    response = await client.ask("Hi")
    assert (response["status"], response["status_details"]["error"]["code"]) == ("failed", "blocked")


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (Say("One two three four.", audio_ms=4_000), "One two three four."),
        (Say("One two, three four.", audio_ms=4_000, goes_on=True), "One two"),
    ],
)
async def test_what_was_said_is_stored_when_the_client_leaves(servers: ScriptedServers, answer: Say, kept: str) -> None:
    server = servers.open(voice=[answer, Stall()])
    client = await RealtimeClient.enter(server)
    client.write("Count")
    client.send("response.create")
    await asyncio.sleep(2.2)
    client.conversation.end()
    client.conversation.session.close(for_good=True)
    await asyncio.sleep(1)
    assert (await stored(server, client))[1].rstrip(",") == kept
    assert not server.hub.sessions


async def test_more_audio_than_a_turn_may_have_is_refused(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(voice=[]), audio={"input": {"turn_detection": None}})
    for _ in range(300):
        client.append(bytes(48_000))
    assert refusal(client.append, bytes(48_000)).error_code == "input_audio_buffer_full"
    client.send("input_audio_buffer.commit")
    client.append(bytes(48_000))
    assert refusal(client.send, "input_audio_buffer.commit").error_code == "input_audio_buffer_full"
