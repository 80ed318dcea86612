"""What a model that takes over is told of the conversation, and what it can answer by that."""

from antiphon.models.builtin import BuiltinModel
from antiphon.models.text_live import text_factory
from antiphon.prompts.composer import SUMMARY_HEADING
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.scripted import ScriptedModel
from tests.fakes.talking_tools import Box, talking_tools

ASKED = ("What time is it in Tokyo?", "what is 15 % of 80", "who wrote Hamlet", "How are you?")


async def fall_back(servers: ScriptedServers, successor: ScriptedModel | BuiltinModel) -> Client:
    """A client that has asked four questions before another model takes over."""
    server = servers.open(text=[])
    server.use(
        Mode.TEXT, text_factory(ScriptedModel(["Noon.", "12.", "Shakespeare.", "Fine."])), text_factory(successor)
    )
    client = await Client(server).enter(mode=c.Mode.TEXT)
    for text in ASKED:
        await client.write(text)
    assert client.live is not None
    client.live.runner.models.set_level(Mode.TEXT, 1)
    await client.settle(1)
    return client


async def test_a_fallback_model_gets_a_summary_as_context_and_the_last_turns_in_full(servers: ScriptedServers) -> None:
    successor = ScriptedModel(["All right."])
    client = await fall_back(servers, successor)
    await client.write("and now?")
    (prompt,) = successor.prompts
    _, _, told = prompt.system.partition(SUMMARY_HEADING)
    assert told.strip().startswith("You asked what time it is in Tokyo and what 15 % of 80 is.")
    texts = [getattr(message, "text", "").strip() for message in prompt.messages]
    assert texts == ["who wrote Hamlet", "Shakespeare.", "How are you?", "Fine.", "and now?"]


async def test_the_offline_assistant_knows_what_was_said_to_the_model_before_it(servers: ScriptedServers) -> None:
    client = await fall_back(servers, BuiltinModel(Box(talking_tools())))
    await client.write("what did I ask you?")
    assert client.last(s.Response).text == (
        "You asked how I am, and I said: “Fine.” Before that, you asked who wrote Hamlet. "
        "And earlier: You asked what time it is in Tokyo and what 15 % of 80 is."
    )
    await client.write("What did we talk about?")
    assert client.last(s.Response).text == (
        "You asked what time it is in Tokyo and what 15 % of 80 is. You asked who wrote Hamlet and how I am."
    )
