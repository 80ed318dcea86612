"""The translation of OpenAI's Realtime events to a session: items, functions of the client, and instructions."""

import asyncio
import json

import pytest

from antiphon.tools.call import ToolCall
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.calls import ScriptedServers
from tests.fakes.gates import Counted, make_tool
from tests.fakes.realtime_client import WEATHER, RealtimeClient, refusal, stored
from tests.fakes.scripted_live import WAITING, Call, Hear, Say


async def test_a_clients_function_is_called_and_its_result_is_used(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Call("get_weather", {"city": "Oslo"}, id="provider-1234"), Say("It is cold.", audio_ms=500)]
    )
    client = await RealtimeClient.enter(server, tools=[WEATHER])
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
    client = await RealtimeClient.enter(server, tools=[WEATHER])
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
    client = await RealtimeClient.enter(server, tools=[WEATHER])
    await client.ask("How is the weather?")
    assert client.transcript == "Sorry."
    assert "response.function_call_arguments.done" not in client.types


async def test_the_servers_own_tools_run_inside_a_response(servers: ScriptedServers) -> None:
    handler = Counted()
    server = servers.open(make_tool("read_it", handler), text=[[ToolCall("call-11111", "read_it", {})], "Done."])
    client = await RealtimeClient.enter(server)
    response = await client.ask("Read it")
    assert handler.runs == 1
    assert [item["type"] for item in response["output"]] == ["message"]


async def test_a_result_that_no_response_is_asked_for_is_known_in_the_next_turn(servers: ScriptedServers) -> None:
    server = servers.open(text=[[ToolCall("call-11111", "get_weather", {"city": "Oslo"})], "It was cold."])
    client = await RealtimeClient.enter(server, tools=[WEATHER])
    response = await client.ask("How is the weather in Oslo?")
    output = {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "cold"}
    client.send("conversation.item.create", item=output)
    await asyncio.sleep(30)
    await client.ask("And?")
    assert client.transcript == "It was cold."
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert [result.content for result in results] == ["cold"]


OSLO = [ToolCall("call-11111", "get_weather", {"city": "Oslo"})]


async def test_a_message_while_a_call_waits_is_answered_and_the_output_is_known_later(
    servers: ScriptedServers,
) -> None:
    client = await RealtimeClient.enter(servers.open(text=[OSLO, "I am here.", "It was cold."]), tools=[WEATHER])
    call = (await client.ask("How is the weather in Oslo?"))["output"][0]
    assert (await client.ask("Are you there?"))["status"] == "completed"
    assert client.transcript == "I am here."
    client.output(call["call_id"], "cold")
    await client.ask("And the weather?")
    assert client.transcript == "It was cold."
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert [result.content for result in results] == ["cold"]


async def test_an_output_after_its_call_was_given_up_is_known_in_the_next_turn(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=[OSLO, "I cannot tell.", "It was cold."]), tools=[WEATHER])
    call = (await client.ask("How is the weather in Oslo?"))["output"][0]
    await client.ask_again()
    assert client.transcript == "I cannot tell."
    client.output(call["call_id"], "cold")
    assert refusal(client.output, call["call_id"], "cold").error_code == "invalid_tool_call_id"
    await client.ask("And now?")
    assert client.transcript == "It was cold."
    *_, made, result, asked = servers.script.prompts[-1].messages
    assert isinstance(made, AssistantMessage)
    assert isinstance(result, ToolMessage)
    assert (made.calls[0].id, result.content, asked) == (result.call_id, "cold", UserMessage("And now?"))


async def test_a_name_of_the_servers_tools_is_refused(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(make_tool("get_weather", Counted()), text=[]))
    error = refusal(client.update, tools=[WEATHER])
    assert (error.error_code, error.param) == ("invalid_value", "session.tools")
    assert client.conversation.session.state.turns == 0


async def test_earlier_items_are_the_history_of_the_conversation(servers: ScriptedServers) -> None:
    server = servers.open(text=["Blue."])
    client = await RealtimeClient.enter(server)
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
    client = await RealtimeClient.enter(servers.open(text=["Cold."]))
    client.write("How is the weather in Oslo?")
    call = {"type": "function_call", "call_id": "call_A", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
    client.send("conversation.item.create", item=call)
    output = {"type": "function_call_output", "call_id": "call_A", "output": "cold"}
    client.send("conversation.item.create", item=output)
    await client.ask("And now?")
    messages = servers.script.prompts[-1].messages
    assert [type(message) for message in messages] == [UserMessage, AssistantMessage, ToolMessage, UserMessage]


@pytest.mark.parametrize("deleted", [1, 2])
async def test_an_earlier_call_is_deleted_with_its_output(servers: ScriptedServers, deleted: int) -> None:
    client = await RealtimeClient.enter(servers.open(text=["I don't know."]))
    client.write("How is the weather in Oslo?")
    call = {"type": "function_call", "call_id": "call_A", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
    client.send("conversation.item.create", item=call)
    client.output("call_A", "cold")
    client.send("conversation.item.delete", item_id=client.every("conversation.item.added")[deleted]["item"]["id"])
    await client.ask("And now?")
    assert servers.script.prompts[-1].messages == (UserMessage("How is the weather in Oslo?"), UserMessage("And now?"))


async def test_instructions_of_one_response_hold_for_it_alone(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["Hoy.", "Hello."]), instructions="Be polite.")
    client.write("Hi")
    client.send("response.create", response={"instructions": "Talk like a pirate.", "metadata": {"k": "v"}})
    await asyncio.sleep(2)
    assert client.last_response["metadata"] == {"k": "v"}
    await client.ask("Hi again")
    first, second = servers.script.prompts
    assert "pirate" in first.system
    assert "pirate" not in second.system
    assert "Be polite." in second.system


async def test_a_response_with_empty_input_leaves_the_users_message_for_the_next(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["One moment.", "Four."]))
    client.write("What is two plus two?")
    client.send("response.create", response={"instructions": "Say exactly these words: One moment.", "input": []})
    await asyncio.sleep(5)
    assert client.transcript == "One moment."
    await client.ask_again()
    assert client.transcript == "Four."
    asked, said = UserMessage("What is two plus two?"), AssistantMessage("One moment. ")
    assert servers.script.prompts[-1].messages == (said, asked)


async def test_a_truncated_answer_is_stored_as_far_as_it_was_heard(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("One two three four.", audio_ms=4_000)])
    client = await RealtimeClient.enter(server)
    response = await client.ask("Count", seconds=1.5)
    item = response["output"][0]["id"]
    assert refusal(client.send, "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=9_000)
    client.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=2_000)
    await asyncio.sleep(1)
    assert client.last("conversation.item.truncated")["audio_end_ms"] == 2_000
    assert await stored(server, client) == ["Count", "One two"]


async def test_an_answer_can_be_truncated_after_it_was_played(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("One two three four.", audio_ms=1_000)])
    client = await RealtimeClient.enter(server)
    response = await client.ask("Count", seconds=5)
    item = response["output"][0]["id"]
    client.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=500)
    await asyncio.sleep(1)
    assert await stored(server, client) == ["Count", "One two"]


async def test_an_item_that_no_response_has_used_can_be_deleted(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["Yes."]))
    client.write("Never mind this.")
    id = client.last("conversation.item.added")["item"]["id"]
    client.send("conversation.item.delete", item_id=id)
    assert client.types[-1] == "conversation.item.deleted"
    await client.ask("Hello?")
    assert servers.script.prompts[-1].messages == (UserMessage("Hello?"),)
    assert refusal(client.send, "conversation.item.delete", item_id=id).error_code == "item_not_found"


async def test_no_speech_is_told_when_a_turn_is_given_up_for_lack_of_a_response(servers: ScriptedServers) -> None:
    server = servers.open(
        voice=[Call("get_weather", {"city": "Oslo"}, id="provider-1234"), Say("It is cold.", audio_ms=500)]
    )
    client = await RealtimeClient.enter(server, tools=[WEATHER])
    await client.speak(0.2)
    response = await client.ask("How is the weather in Oslo?")
    output = {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "cold"}
    client.send("conversation.item.create", item=output)
    await asyncio.sleep(30)
    assert client.conversation.session.state.turn is None
    assert "input_audio_buffer.speech_started" not in client.types


async def test_more_items_than_a_response_can_use_are_refused(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["Yes."]))
    for _ in range(500):
        client.write("again")
    assert refusal(client.write, "once more").error_code == "too_many_items"
    await client.ask_again()
    assert client.transcript == "Yes."


async def test_system_items_beyond_the_limit_of_instructions_are_refused(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=[]))
    client.write("x" * 8_000, role="system")
    client.write("x" * 8_000, role="system")
    assert refusal(client.write, "x", role="system").param == "instructions"
    assert refusal(client.update, instructions="x").param == "instructions"


async def test_what_was_said_can_be_deleted(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello Ann.", "I don't know."])
    client = await RealtimeClient.enter(server)
    client.write("Earlier words.", role="assistant")
    await client.ask("I am Ann.")
    for item in [event["item"] for event in client.every("conversation.item.added")]:
        client.send("conversation.item.delete", item_id=item["id"])
    assert client.types.count("conversation.item.deleted") == 3
    await client.ask("Who am I?")
    assert servers.script.prompts[-1].messages == (UserMessage("Who am I?"),)
    assert [text for text in await stored(server, client) if text] == ["Who am I?", "I don't know."]


async def test_an_answer_can_be_deleted_while_it_is_played(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("Hello Ann.", audio_ms=4_000)])
    client = await RealtimeClient.enter(server)
    response = await client.ask("I am Ann.", seconds=1)
    client.send("conversation.item.delete", item_id=response["output"][0]["id"])
    assert client.types[-1] == "conversation.item.deleted"
    await asyncio.sleep(6)
    assert [text for text in await stored(server, client) if text] == ["I am Ann."]


@pytest.mark.parametrize("deleted", ["function_call", "function_call_output"])
async def test_a_call_and_its_output_are_deleted_together(servers: ScriptedServers, deleted: str) -> None:
    server = servers.open(text=[OSLO, "It is cold.", "I don't know."])
    client = await RealtimeClient.enter(server, tools=[WEATHER])
    call = (await client.ask("How is the weather in Oslo?"))["output"][0]
    client.output(call["call_id"], "cold")
    await client.ask_again()
    items = {event["item"]["type"]: event["item"] for event in client.every("conversation.item.added")}
    client.send("conversation.item.delete", item_id=items[deleted]["id"])
    await client.ask("How was it?")
    kinds = [type(message) for message in servers.script.prompts[-1].messages]
    assert kinds == [UserMessage, AssistantMessage, UserMessage]
    assert not any(getattr(message, "calls", ()) for message in servers.script.prompts[-1].messages)


async def test_a_call_that_was_not_run_can_be_deleted(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=[OSLO, "I am here."]), tools=[WEATHER])
    call = (await client.ask("How is the weather in Oslo?"))["output"][0]
    client.send("conversation.item.delete", item_id=call["id"])
    assert client.types[-1] == "conversation.item.deleted"
    await client.ask("Are you there?")
    assert client.transcript == "I am here."


async def test_a_deleted_system_item_is_no_longer_part_of_the_instructions(servers: ScriptedServers) -> None:
    client = await RealtimeClient.enter(servers.open(text=["Yes."]))
    client.write("Talk like a pirate.", role="system")
    client.send("conversation.item.delete", item_id=client.last("conversation.item.added")["item"]["id"])
    await client.ask("Hi")
    assert "pirate" not in servers.script.prompts[-1].system


async def test_a_model_with_its_own_context_forgets_what_is_deleted(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("Hello Ann.", audio_ms=300)])
    client = await RealtimeClient.enter(server)
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
    client = await RealtimeClient.enter(server)
    client.write("I am Ann.")
    await client.speak(1.5)
    await asyncio.sleep(3)
    await client.speak(1.5)
    await asyncio.sleep(3)
    assert client.transcript == "Ann."
    assert UserMessage("I am Ann.") in servers.voice.prompts[-1]
