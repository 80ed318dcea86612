"""A session that is restored in another process keeps its state, in voice too."""

from typing import Any

import pytest

from antiphon.models.live import ModelFactory
from antiphon.models.text_live import text_factory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.spec import Mode
from antiphon.transcript import UserMessage
from tests.fakes.calls import Client, ScriptedServers, Server
from tests.fakes.scripted import ScriptedModel
from tests.fakes.scripted_live import PROFILE, Hear, Say, ScriptedLive, Stall

NOON = (Hear("what time is it"), Say("It is noon.", audio_ms=500))
MORE = (Hear("and now"), Say("One.", audio_ms=500))


async def call(server: Server) -> Client:
    """A client that is listening and has asked one question."""
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(10)
    return client


async def go_on_elsewhere(servers: ScriptedServers, client: Client, voice: Any = MORE) -> Client:
    """Resumes the session in another process. The first one takes no part: it may have crashed."""
    client.link.closed = None
    two = servers.open(text=["Hello."], voice=voice, database=client.server.database, owner="two")
    return await Client(two).enter(resume=client.handle, last_n=client.last_n)


async def test_a_restored_call_is_still_a_call(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    back = await go_on_elsewhere(servers, client)
    assert back.last(s.Session).mode is c.Mode.VOICE
    assert back.states[-1] == "listening"
    await back.speak(1)
    await back.settle(2)
    assert back.last(s.Response).text == "One."
    assert back.every(s.Audio)


async def test_answer_numbers_continue(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    numbers = {audio.turn for audio in client.every(s.Audio)}
    back = await go_on_elsewhere(servers, client)
    await back.speak(1)
    await back.settle(2)
    assert min(audio.turn for audio in back.every(s.Audio)) > max(numbers)


async def test_a_call_that_was_being_answered_listens_again(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=[Hear("what time is it"), Stall()], database=MemoryDatabase())
    client = await call(server)
    assert client.states[-1] == "processing"
    back = await go_on_elsewhere(servers, client, voice=[Say("It is noon.", audio_ms=500)])
    assert back.last(s.Session).mode is c.Mode.VOICE
    await back.settle(10)
    assert back.last(s.Response).text == "It is noon."
    assert back.every(s.Audio)
    assert back.states[-1] == "listening"


async def test_an_answer_that_the_user_was_speaking_over_is_not_spoken_again(servers: ScriptedServers) -> None:
    interrupted = [*NOON[:1], Say("It is noon.", audio_ms=9_000), Hear("and now", transcript="never"), Stall()]
    client = await Client(servers.open(text=[], voice=interrupted, database=MemoryDatabase())).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(2)
    assert client.states[-1] == "speaking"
    await client.speak(1, playing=True)
    assert client.states[-1] == "processing"
    back = await go_on_elsewhere(servers, client)
    await back.settle(3)
    assert back.every(s.Audio) == []
    assert back.states[-1] == "listening"


async def test_a_session_that_was_not_listening_is_idle(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    await client.say(c.StopListening())
    back = await go_on_elsewhere(servers, client)
    assert (back.last(s.Session).mode, back.states[-1]) == (c.Mode.VOICE, "idle")


async def test_a_session_that_had_switched_to_text_stays_in_text(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    await client.say(c.EndVoice())
    back = await go_on_elsewhere(servers, client)
    assert (back.last(s.Session).mode, back.states[-1]) == (c.Mode.TEXT, "idle")
    await back.write("hi")
    assert back.last(s.Response).text.strip() == "Hello."


async def test_a_session_continues_in_text_where_voice_is_unavailable(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    back = await go_on_elsewhere(servers, client, voice=None)
    assert (back.last(s.Session).mode, back.states[-1]) == (c.Mode.TEXT, "idle")
    await back.write("hi")
    assert back.last(s.Response).text.strip() == "Hello."


async def test_a_call_continued_in_another_process_is_one_call(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    back = await go_on_elsewhere(servers, client)
    await back.speak(1)
    await back.settle(10)
    await back.say(c.EndVoice())
    (found,) = await client.server.database.voice_calls.list("ann", 10)
    assert found.summary == "You asked what time it is. You said “and now”."
    assert found.ended_ms is not None


async def test_the_settings_are_restored(servers: ScriptedServers) -> None:
    client = await call(servers.open(text=[], voice=NOON, database=MemoryDatabase()))
    await client.say(c.Settings(voice="amy", voice_speed=120))
    back = await go_on_elsewhere(servers, client)
    await back.speak(1)
    assert servers.voice.voice == ("amy", 1.2)


async def test_an_answer_that_was_never_heard_is_removed(servers: ScriptedServers) -> None:
    server = servers.open(text=[], voice=NOON, database=MemoryDatabase())
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(0.5)
    assert client.every(s.Response), "it was stored whole"
    await client.say(c.Interrupt(played_ms=0))
    back = await go_on_elsewhere(servers, client)
    await back.speak(0.1)
    assert servers.voice.messages == [UserMessage("what time is it")]


@pytest.mark.parametrize("mode", c.Mode)
async def test_a_hello_does_not_change_the_mode_of_the_resumed_session(servers: ScriptedServers, mode: c.Mode) -> None:
    client = await call(servers.open(text=[], voice=NOON))
    client.drop()
    back = await Client(client.server).enter(resume=client.handle, last_n=client.last_n, mode=mode)
    assert (back.last(s.Session).mode, back.states[-1]) == (c.Mode.VOICE, "listening")


async def test_one_spoken_turn_is_enough_to_resume_in_voice(servers: ScriptedServers) -> None:
    models = {
        Mode.TEXT: text_factory(ScriptedModel([])),
        Mode.VOICE: ModelFactory(PROFILE, lambda: ScriptedLive([Hear("what time is it"), Stall()])),
    }
    server = Server(models=models, database=MemoryDatabase())
    servers.opened.append(server)
    client = await Client(server).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    back = await go_on_elsewhere(servers, client, voice=[Say("It is noon.", audio_ms=500)])
    assert back.last(s.Session).mode is c.Mode.VOICE
    await back.settle(10)
    assert back.states[-1] == "listening"
