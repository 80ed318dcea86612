"""Two sessions share a conversation: at its next turn, each model knows the turns of the other."""

from typing import Any

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.storage.memory import MemoryDatabase
from antiphon.transcript import AssistantMessage, Message, UserMessage
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.scripted_live import Hear, Say


async def two_clients(server: Server, other: Server | None = None, **hello: Any) -> tuple[Client, Client]:
    """Two clients; the second joins the conversation after its first turn."""
    first = await Client(server).enter(mode=c.Mode.TEXT)
    await first.write("I am Ann")
    second = await Client(other or server).enter(conversation_id=first.last(s.Session).conversation_id, **hello)
    return first, second


def said(messages: Any) -> list[str]:
    return [message.text.strip() for message in messages if isinstance(message, UserMessage | AssistantMessage)]


def kept(client: Client) -> list[Message]:
    assert client.live is not None
    return list(client.live.runner.writer.transcript.messages)


ALL = ["I am Ann", "Hello Ann.", "I am 30", "Noted.", "who am I"]


async def test_turns_of_the_other_session_are_known_at_the_next_turn(servers: ScriptedServers) -> None:
    first, second = await two_clients(servers.open(text=["Hello Ann.", "Noted.", "Ann, 30."]))
    await second.write("I am 30")
    await first.write("who am I")
    assert said(servers.script.prompts[-1].messages) == ALL
    assert first.last(s.Response).text.strip() == "Ann, 30."
    assert said(kept(first)) == [*ALL, "Ann, 30."]


async def test_turns_of_a_session_in_another_process_are_known_too(servers: ScriptedServers) -> None:
    database = MemoryDatabase()
    other = servers.open(text=["Noted."], database=database, owner="two")
    one = servers.open(text=["Hello Ann.", "Ann, 30."], database=database)
    first, second = await two_clients(one, other)
    await second.write("I am 30")
    await first.write("who am I")
    assert said(servers.script.prompts[-1].messages) == ALL


async def test_turns_added_during_an_answer_are_known_at_the_next_turn(servers: ScriptedServers) -> None:
    first, second = await two_clients(servers.open(text=["Hello Ann.", "One two three.", "Noted.", "Ann, 30."]))
    assert first.live is not None
    assert second.live is not None
    first.live.runner.post(c.TextMessage("count"))
    second.live.runner.post(c.TextMessage("I am 30"))
    await first.settle(5)
    await first.write("who am I")
    known = said(servers.script.prompts[-1].messages)
    assert {"count", "I am 30"} <= set(known)
    assert len(known) == len(set(known)) == 7


async def test_a_single_session_does_not_reconnect_its_model(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[Say("Hello."), Say("Yes."), Say("No.")])
    client = await Client(server).enter()
    for text in ("hi", "is it noon", "is it one"):
        await client.write(text, seconds=20)
    assert servers.voice.texts == ["hi", "is it noon", "is it one"]
    assert not servers.voice.closed


async def test_a_call_knows_the_other_turns_one_turn_later(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello Ann.", "Noted."], voice=[Hear("who am I"), Say("Ann.", audio_ms=500)])
    first, second = await two_clients(server, mode=c.Mode.VOICE)
    await second.say(c.StartListening(), seconds=0.1)
    await first.write("I am 30")
    await second.speak(0.9)
    servers.next_voice = [Hear("and how old"), Say("30.", audio_ms=500)]
    await second.settle(10)
    await second.speak(1)
    await second.settle(10)
    assert second.last(s.Response).text == "30."
    assert said(servers.voice.messages) == [*ALL, "Ann.", "and how old", "30."]
