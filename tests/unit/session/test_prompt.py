"""What a model is told when it is connected."""

from dataclasses import replace

from antiphon.prompts.composer import CALL_NOTE
from antiphon.protocol import client_messages as c
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted_live import Hear, Say


async def test_only_in_a_call_is_a_model_told_that_it_is_heard(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[Say("Hello.")], voice=[Hear("hi"), Say("Hello.")])).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(0.82)
    await client.settle(5)
    context = servers.voice.context
    assert context is not None
    assert context.mode_note == CALL_NOTE
    assert context.system.endswith(f"\n\n{CALL_NOTE}")


async def test_a_model_can_ask_for_the_names_of_its_own_user(servers: ScriptedServers) -> None:
    async def names_of(user: str) -> list[str]:
        return [f"{user}'s list"]

    server = servers.open(text=[Say("Hello.")], voice=[Hear("hi"), Say("Hello.")])
    server.hub.models = replace(server.hub.models, names_of=names_of)
    client = await Client(server, "ben").enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(0.82)
    context = servers.voice.context
    assert context is not None
    assert context.names is not None
    assert await context.names() == ["ben's list"]
