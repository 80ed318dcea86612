"""Switching between text and voice, and the record that a call leaves."""

import asyncio
from typing import Any

import pytest

from antiphon.models.base import ModelError
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.result import After, ToolResult, ok
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.gates import make_action, make_tool
from tests.fakes.scripted_live import Call, HangUp, Hear, Say, ScriptedLive

NOON = (Hear("what time is it"), Say("It is noon.", audio_ms=1_000))


async def listen(server: Server, **hello: Any) -> Client:
    """A client whose microphone is open."""
    client = await Client(server).enter(**hello)
    await client.say(c.StartListening(), seconds=0.1)
    assert client.states[-1] == "listening"
    return client


# The initial mode of a session.


@pytest.mark.parametrize("hello", [{}, {"mode": c.Mode.VOICE}], ids=["no_hello", "voice"])
async def test_a_session_begins_in_voice_where_voice_is_available(
    servers: ScriptedServers, hello: dict[str, Any]
) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter(**hello)
    assert client.last(s.Session).mode is c.Mode.VOICE
    assert client.states == ["idle"]
    assert servers.voice.context is None, "nothing is connected before it is needed"


async def test_a_client_that_asks_for_text_gets_text(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["Hello."], voice=[])).enter(mode=c.Mode.TEXT)
    assert client.last(s.Session).mode is c.Mode.TEXT
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."
    assert client.every(s.Audio) == []


async def test_without_voice_every_session_is_in_text(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[])).enter(mode=c.Mode.VOICE)
    assert client.last(s.Session).mode is c.Mode.TEXT


async def test_an_http_chat_is_in_text(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."], voice=[])
    client = Client(server)
    live = await server.hub.begin_request("ann", None, client.link)
    assert live is not None
    assert live.runner.state.mode is Mode.TEXT
    await server.hub.end_request(live)


async def test_a_message_typed_in_voice_is_answered_by_voice(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[Say("It is noon.", audio_ms=500)])).enter()
    await client.write("what time is it", seconds=1)
    assert servers.voice.texts == ["what time is it"]
    assert client.states == ["idle", "processing", "speaking"]
    assert client.every(s.Audio)
    await client.say(c.PlaybackDone())
    assert client.states[-1] == "idle"


async def test_a_spoken_turn_is_heard_answered_and_played(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=[], voice=NOON))
    await client.speak(1)
    await client.settle(1)
    assert client.states == ["idle", "listening", "processing", "speaking"]
    assert client.last(s.Transcript).text == "what time is it"
    assert client.last(s.Response).text.strip() == "It is noon."
    assert client.every(s.Audio)
    await client.say(c.PlaybackDone(), seconds=1)
    assert client.states[-1] == "listening"


async def test_the_last_audio_of_an_answer_is_marked_last(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=[], voice=[Hear("hi"), Say("Hello, my friend.", audio_ms=1_000)]))
    await client.speak(1)
    await client.settle(1)
    assert [audio.last for audio in client.every(s.Audio)] == [False, True]


async def test_a_second_message_in_a_call_is_answered_by_the_same_model(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=[], voice=[*NOON, Say("Indeed.", audio_ms=500)]))
    first = servers.voice
    await client.speak(1)
    await client.settle(10)
    await client.write("really?")
    assert servers.voice is first
    assert client.last(s.Response).text.strip() == "Indeed."


# Starting and ending calls.


async def test_a_call_without_history_begins_with_a_greeting(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.say(c.StartVoice(), seconds=0.2)
    assert client.states == ["idle", "listening", "processing"]
    await client.settle(1)
    assert servers.voice.said == ["Hello! What can I do for you?"]
    assert client.last(s.Response).text.strip() == "Hello! What can I do for you?"


async def test_a_call_that_begins_in_text_is_greeted_too(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter(mode=c.Mode.TEXT)
    await client.say(c.StartVoice())
    assert servers.voice.said == ["Hello! What can I do for you?"]


async def test_a_user_is_greeted_only_once(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.say(c.StartVoice(), seconds=30)
    await client.say(c.StartVoice())
    assert len(servers.voice.said) == 1
    assert client.states[-1] == "listening"


async def test_a_client_that_only_starts_to_listen_is_not_greeted(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=[], voice=[]))
    assert client.states == ["idle", "listening"]
    assert servers.voice.said == []


async def test_a_client_may_decline_the_greeting(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.say(c.Settings(greeting=False))
    await client.say(c.StartVoice())
    assert servers.voice.said == []


async def test_a_pending_request_is_answered_first_in_voice_with_the_chats_history(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello Ann."], voice=[Say("Here is a joke.")])
    client = await Client(server).enter(mode=c.Mode.TEXT)
    await client.write("I am Ann")
    await client.say(c.StartVoice("tell me a joke"))
    assert client.last(s.Response).text.strip() == "Here is a joke."
    assert servers.voice.texts == ["tell me a joke"]
    assert servers.voice.messages[0] == UserMessage("I am Ann")


async def test_start_listening_during_a_text_answer_waits_for_its_end(servers: ScriptedServers) -> None:
    async def ask_for_voice(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(0.5)
        return ok("asked")

    script = [[ToolCall(None, "ask_for_voice", {})], "Let's switch to voice mode."]
    server = servers.open(make_tool("ask_for_voice", ask_for_voice), text=script, voice=[Say("Here is a joke.")])
    client = await Client(server).enter(mode=c.Mode.TEXT)
    await client.write("let's talk", seconds=0.1)
    await client.say(c.StartVoice("tell me a joke"))
    assert [response.text.strip() for response in client.every(s.Response)] == [
        "Let's switch to voice mode.",
        "Here is a joke.",
    ]
    assert client.states[:4] == ["idle", "processing", "idle", "listening"]


async def test_an_unreachable_voice_model_leaves_the_session_in_text(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."], voice=[])
    servers.voice = ScriptedLive(refuses=ModelError("The voice is away."))
    client = await Client(server).enter()
    await client.say(c.StartListening())
    assert (client.last(s.Notice).code, client.last(s.Notice).text) == ("voice_unavailable", "The voice is away.")
    assert client.last(s.EndVoiceSession).reason == "voice_unavailable"
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."
    assert client.states == ["idle", "processing", "idle"]


async def test_a_session_can_switch_from_voice_to_text(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=["Hello."], voice=[]))
    await client.say(c.EndVoice())
    assert client.states[-1] == "idle"
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."


async def test_a_voice_session_that_never_listened_can_switch_to_text(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["Hello."], voice=[])).enter()
    await client.say(c.EndVoice())
    assert client.last(s.EndVoiceSession).reason == "user_request"
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."


async def test_audio_without_words_ends_as_an_empty_turn(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=["Yes?"], voice=[]))
    await client.speak(1)
    await client.say(c.StopListening())
    assert client.states == ["idle", "listening", "processing", "idle"]


# Tools that control the call.


def ending(after: After, data: Any = None) -> Any:
    async def bye(args: Args, context: Context) -> ToolResult:
        return ok(data, intents=[context.voice.end_session(after)])

    return make_action("bye", bye)


@pytest.mark.parametrize("after", [After.CURRENT_TURN, After.FAREWELL_SPOKEN])
async def test_a_tool_ends_the_call_once_its_farewell_was_played(servers: ScriptedServers, after: After) -> None:
    script = [Hear("goodbye"), Call("bye"), Say("Goodbye!", audio_ms=2_000)]
    client = await listen(servers.open(ending(after), text=[], voice=script))
    await client.speak(1)
    await client.settle(1)
    assert client.every(s.GenerationComplete), "all of it is made, and some of it is played"
    assert client.every(s.EndVoiceSession) == []
    await client.settle(1)
    await client.say(c.PlaybackDone(), seconds=0.1)
    assert len(client.every(s.EndVoiceSession)) == 1
    assert client.states[-2:] == ["listening", "idle"]


async def test_the_call_ends_even_if_the_client_never_reports_the_farewell_as_played(servers: ScriptedServers) -> None:
    script = [Hear("goodbye"), Call("bye"), Say("Goodbye!", audio_ms=500)]
    client = await listen(servers.open(ending(After.CURRENT_TURN), text=[], voice=script))
    await client.speak(1)
    await client.settle(4)
    assert client.every(s.EndVoiceSession) == []
    await client.settle(6)
    assert len(client.every(s.EndVoiceSession)) == 1


async def test_a_tool_may_end_the_call_at_once(servers: ScriptedServers) -> None:
    script = [Hear("goodbye"), Call("bye"), Say("Never said.", audio_ms=500)]
    data = {"reason": "switch_to_text", "final_message": None}
    client = await listen(servers.open(ending(After.IMMEDIATE, data), text=["Hello."], voice=script))
    await client.speak(0.9)
    assert client.last(s.EndVoiceSession).reason == "switch_to_text"
    assert client.states == ["idle", "listening", "processing", "listening", "idle"]
    await client.settle(5)
    assert not client.every(s.Audio)
    assert not client.every(s.Response)
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."


async def test_the_tool_supplies_the_reason_and_the_last_words(servers: ScriptedServers) -> None:
    data = {"reason": "task_complete", "final_message": "Goodbye!"}
    script = [Hear("goodbye"), Call("bye"), Say("Goodbye!", audio_ms=500)]
    client = await listen(servers.open(ending(After.CURRENT_TURN, data), text=[], voice=script))
    await client.speak(1)
    await client.settle(10)
    received = client.last(s.EndVoiceSession)
    assert (received.reason, received.final_message) == ("task_complete", "Goodbye!")


async def test_a_message_typed_over_the_farewell_is_answered_before_the_end(servers: ScriptedServers) -> None:
    script = [Hear("goodbye"), Call("bye"), Say("Goodbye!", audio_ms=5_000), Say("It is noon.", audio_ms=500)]
    client = await listen(servers.open(ending(After.CURRENT_TURN), text=[], voice=script))
    await client.speak(1)
    await client.settle(1)
    await client.write("wait, what time is it?", seconds=1)
    assert client.last(s.Response).text.strip() == "It is noon."
    assert client.every(s.EndVoiceSession) == []
    await client.settle(10)
    assert len(client.every(s.EndVoiceSession)) == 1


# The record of a call.


async def test_a_call_leaves_a_summary_and_its_turns_are_part_of_the_conversation(servers: ScriptedServers) -> None:
    server = servers.open(text=["Fine."], voice=[Hear("what time is it"), Say("It is noon.", audio_ms=500)])
    client = await listen(server)
    await client.speak(1)
    await client.settle(10)
    await client.say(c.EndVoice())
    assert client.last(s.EndVoiceSession).reason == "user_request"
    (call,) = await server.database.voice_calls.list("ann", 10)
    assert call.summary == "You asked what time it is."
    assert call.ended_ms is not None
    await client.write("and how are you")
    assert UserMessage("what time is it") in servers.script.prompts[-1].messages


async def test_a_call_is_on_record_while_it_goes_on(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON)
    client = await listen(server)
    await client.speak(1)
    await client.settle(10)
    (call,) = await server.database.voice_calls.list("ann", 10)
    assert (call.ended_ms, call.summary) == (None, "")


async def test_a_call_in_which_nothing_was_said_leaves_nothing(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[])
    client = await Client(server).enter()
    await client.say(c.StartVoice(), seconds=30)
    await client.say(c.EndVoice())
    assert await server.database.voice_calls.list("ann", 10) == []


async def test_a_client_that_says_goodbye_ends_the_call(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON)
    client = await listen(server)
    await client.speak(1)
    await client.settle(10)
    client.drop(for_good=True)
    await client.settle(1)
    (call,) = await server.database.voice_calls.list("ann", 10)
    assert call.ended_ms is not None
    assert call.summary == "You asked what time it is."


async def test_a_call_ends_when_its_client_does_not_come_back(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON)
    client = await listen(server)
    await client.speak(1)
    await client.settle(10)
    client.drop()
    await client.settle(100)
    assert (await server.database.voice_calls.list("ann", 10))[0].ended_ms is None
    await client.settle(60)
    assert (await server.database.voice_calls.list("ann", 10))[0].ended_ms is not None


async def test_loading_another_conversation_starts_another_call(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."], voice=[*NOON, Hear("and now"), Say("One.", audio_ms=500)])
    first = await Client(server).enter(mode=c.Mode.TEXT)
    await first.write("hi")
    client = await listen(server)
    await client.speak(1)
    await client.settle(10)
    servers.next_voice = [Hear("and now"), Say("One.", audio_ms=500)]
    await client.say(c.LoadConversation(first.last(s.Session).conversation_id))
    await client.speak(1)
    await client.settle(10)
    await client.say(c.EndVoice())
    calls = await server.database.voice_calls.list("ann", 10)
    assert [call.summary for call in calls] == ["You said “and now”.", "You asked what time it is."]
    assert len({call.conversation_id for call in calls}) == 2


async def test_an_interrupted_greeting_is_kept_up_to_what_was_heard(servers: ScriptedServers) -> None:
    server = servers.open(text=["Yes?"], voice=[])
    client = await Client(server).enter()
    await client.say(c.StartVoice(), seconds=0.5)
    await client.say(c.Interrupt(played_ms=0))
    await client.say(c.EndVoice())
    await client.write("hello?")
    stored = await server.database.conversations.turns(client.last(s.Session).conversation_id)
    assert [turn.text.strip() for turn in stored] == ["hello?", "Yes?"]


async def test_a_model_that_hangs_up_during_a_call_is_reconnected(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=[], voice=[Hear("hello", after_ms=100), HangUp("gone")]))
    servers.next_voice = [Say("Here again.")]
    await client.speak(2)
    assert client.every(s.Error) == []
    assert client.last(s.Response).text.strip() == "Here again."


# Voice settings.


async def test_the_voice_comes_from_the_settings(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[])).enter()
    await client.say(c.Settings(voice="amy", voice_speed=150))
    await client.say(c.StartListening())
    assert servers.voice.voice == ("amy", 1.5)


async def test_the_voice_may_be_changed_during_a_call(servers: ScriptedServers) -> None:
    client = await listen(servers.open(text=[], voice=[]))
    assert servers.voice.voice == (None, 1.0)
    await client.say(c.Settings(voice_speed=80))
    assert servers.voice.voice == (None, 0.8)


async def test_a_call_begins_with_the_answer_to_a_message_that_has_none(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[], voice=[Say("It is noon.")])).enter(
        initial_messages=(c.InitialMessage(c.Role.USER, "what time is it"),)
    )
    await client.say(c.StartVoice())
    assert client.last(s.Response).text.strip() == "It is noon."
