"""What a model is told when it is connected."""

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
