"""A session of ours, driven through the gateway."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from antiphon.authoring.adapters import ADAPTERS
from antiphon.gateway.client_calls import ClientCall, ClientCalls, ToolDeclaration
from antiphon.gateway.session import OUTPUT_HZ
from antiphon.protocol.closing import INTERNAL
from antiphon.session.client_application import ClientApplication
from antiphon.session.state import Phase
from antiphon.tools.call import ToolCall
from antiphon.tools.errors import ClientToolError
from antiphon.tools.registry import Snapshot
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.calls import ScriptedServers
from tests.fakes.gates import Counted, make_tool
from tests.fakes.gateway import open_session
from tests.fakes.scripted_live import WAITING, Hear, Say

OPEN_DOOR = ToolDeclaration(
    "open_door",
    "Opens a door of the house.",
    {"type": "object", "properties": {"door": {"type": "string"}}, "required": ["door"]},
)


def tools_of(calls: ClientCalls, *declared: ToolDeclaration) -> list[Any]:
    return calls.make_tools(declared, ADAPTERS)


async def test_typed_text_is_answered_and_stored(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."])
    session, told = await open_session(server)
    session.say("Hi")
    await asyncio.sleep(1)
    assert told.answers == ["Hello."]
    stored = await server.database.conversations.turns(session.conversation_id)
    assert [turn.text for turn in stored] == ["Hi", "Hello. "]


async def test_the_clients_instructions_and_history_are_in_the_prompt(servers: ScriptedServers) -> None:
    session, _ = await open_session(
        servers.open(text=["Blue."]),
        history=[UserMessage("My colour is blue."), AssistantMessage("Noted.")],
        application=ClientApplication(instructions="Answer in one word."),
    )
    session.say("Which colour?")
    await asyncio.sleep(1)
    prompt = servers.script.prompts[-1]
    assert prompt.system.rstrip().endswith("Answer in one word.")
    assert [message.text for message in prompt.messages if isinstance(message, UserMessage | AssistantMessage)] == [
        "My colour is blue.",
        "Noted.",
        "Which colour?",
    ]


async def test_changed_instructions_hold_from_the_next_turn_on(servers: ScriptedServers) -> None:
    session, _ = await open_session(servers.open(text=["One.", "Two."]))
    session.say("first")
    await asyncio.sleep(1)
    session.configure(ClientApplication(instructions="Be brief."))
    session.say("second")
    await asyncio.sleep(1)
    first, second = servers.script.prompts
    assert "Be brief." not in first.system
    assert "Be brief." in second.system


async def test_a_tool_of_the_client_passes_the_gate_and_is_run_by_the_client(servers: ScriptedServers) -> None:
    sent: list[ClientCall] = []
    calls = ClientCalls(sent.append)
    server = servers.open(text=[[ToolCall("call-12345", "open_door", {"door": "front"})], "It is open."])
    session, told = await open_session(server, tools=tools_of(calls, OPEN_DOOR))
    session.say("Open the front door")
    # Longer than any voice budget: people may be asked first.
    await asyncio.sleep(30)
    assert [(call.name, call.args) for call in sent] == [("open_door", {"door": "front"})]
    assert calls.answer(sent[0].id, {"opened": True})
    await asyncio.sleep(1)
    assert told.answers == ["It is open."]
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert results[0].content == {"opened": True}
    assert [schema["function"]["name"] for schema in servers.script.prompts[0].tools] == ["open_door"]


async def test_invalid_arguments_never_reach_the_client(servers: ScriptedServers) -> None:
    sent: list[ClientCall] = []
    server = servers.open(text=[[ToolCall("call-12345", "open_door", {"gate": 1})], "Sorry."])
    session, _ = await open_session(server, tools=tools_of(ClientCalls(sent.append), OPEN_DOOR))
    session.say("Open it")
    await asyncio.sleep(1)
    assert sent == []
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert results[0].content["error"]["type"] == "VALIDATION"


async def test_a_client_that_leaves_does_not_keep_its_calls_waiting(servers: ScriptedServers) -> None:
    sent: list[ClientCall] = []
    calls = ClientCalls(sent.append)
    server = servers.open(text=[[ToolCall("call-12345", "open_door", {"door": "front"})], "Sorry."])
    session, _ = await open_session(server, tools=tools_of(calls, OPEN_DOOR))
    session.say("Open it")
    await asyncio.sleep(1)
    calls.close()
    await asyncio.sleep(1)
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert results[0].content["error"]["type"] == "TRANSIENT"
    assert not calls.answer(sent[0].id, "late")


async def test_a_client_may_not_replace_a_tool_of_the_server(servers: ScriptedServers) -> None:
    server = servers.open(make_tool("open_door", Counted()), text=[])
    with pytest.raises(ClientToolError, match="The server has a tool called open_door itself"):
        await open_session(server, tools=tools_of(ClientCalls(lambda call: None), OPEN_DOOR))


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (ToolDeclaration("no spaces"), "is not a tool name"),
        (ToolDeclaration("f", parameters={"type": "array"}), 'type "object"'),
        (ToolDeclaration("f", parameters={"type": "object", "properties": {"a": {"type": "wrong"}}}), "JSON schema"),
        (ToolDeclaration("f", "x" * 5_000), "longer than"),
    ],
)
def test_an_unusable_declaration_is_refused_with_the_reason(declared: ToolDeclaration, why: str) -> None:
    with pytest.raises(ClientToolError, match=why):
        tools_of(ClientCalls(lambda call: None), declared)


async def test_a_session_keeps_its_clients_tools_when_the_servers_are_reloaded(servers: ScriptedServers) -> None:
    server = servers.open(text=[])
    session, _ = await open_session(server, tools=tools_of(ClientCalls(lambda call: None), OPEN_DOOR))
    tools = server.hub.sessions[session.id].runner.tools
    added = make_tool("read_it", Counted())
    tools.pin(Snapshot("1.0.new", {"read_it": added}))
    assert list(tools.snapshot.tools) == ["read_it", "open_door"]


async def test_speech_comes_at_24_khz(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("Hello there.", audio_ms=1_500)])
    session, told = await open_session(server, mode=Mode.VOICE)
    session.say("Hi")
    await asyncio.sleep(3)
    spoken_s = sum(len(pcm) for _, pcm in told.audio) / 2 / OUTPUT_HZ
    assert spoken_s == pytest.approx(1.5, abs=0.01)


async def test_audio_of_any_rate_is_heard_at_16_khz(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("What time is it?"), Say("Noon.")])
    session, told = await open_session(server, mode=Mode.VOICE)
    session.listen()
    await asyncio.sleep(0.1)
    for _ in range(100):
        session.hear(b"\0" * 960, 24_000)
        await asyncio.sleep(0.02)
    await asyncio.sleep(3)
    assert servers.voice.audio_ms == pytest.approx(2_000, abs=60)
    assert told.answers == ["Noon."]


async def test_a_complete_answer_is_not_cut_by_the_next_typed_message(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("A long answer that takes a while.", audio_ms=8_000), Say("Short.")])
    session, _ = await open_session(server, mode=Mode.VOICE)
    session.say("first")
    await asyncio.sleep(9)
    session.say("second")
    await asyncio.sleep(3)
    stored = await server.database.conversations.turns(session.conversation_id)
    assert [turn.text for turn in stored] == ["first", "A long answer that takes a while.", "second", "Short."]


async def test_an_answer_that_is_over_can_be_cut_where_the_user_stopped_hearing(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Say("One two three four.", audio_ms=1_000)])
    session, _ = await open_session(server, mode=Mode.VOICE)
    session.say("count")
    await asyncio.sleep(2)
    session.assume_played()
    session.cut_answer(1, "One two")
    await asyncio.sleep(0.1)
    stored = await server.database.conversations.turns(session.conversation_id)
    assert [turn.text for turn in stored] == ["count", "One two"]
    assert servers.voice.heard[-1] == "One two"


async def test_a_client_that_holds_answers_asks_for_them(servers: ScriptedServers) -> None:
    server = servers.open(voice=[Hear("What time is it?"), Say("Noon.")], profile=WAITING)
    session, told = await open_session(server, mode=Mode.VOICE, application=ClientApplication(holds_answers=True))
    session.listen()
    await asyncio.sleep(0.1)
    for _ in range(60):
        session.hear(b"\0" * 640, 16_000)
        await asyncio.sleep(0.02)
    await asyncio.sleep(3)
    assert told.answers == []
    session.respond()
    await asyncio.sleep(3)
    assert told.answers == ["Noon."]


async def test_a_fault_of_the_endpoint_closes_it_and_not_the_session(
    servers: ScriptedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers.open(text=["Hello."])
    session, told = await open_session(server)

    def fail(message: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(told, "on_message", fail)
    with capture_logs() as lines:
        session.say("Hi")
        await asyncio.sleep(1)
    assert {line["event"] for line in lines} == {"gateway_endpoint_failed"}
    assert told.closed is INTERNAL
    stored = await server.database.conversations.turns(session.conversation_id)
    assert [turn.text.strip() for turn in stored] == ["Hi", "Hello."]


async def test_a_client_that_does_not_answer_a_call_in_a_minute_is_not_waited_for(servers: ScriptedServers) -> None:
    calls = ClientCalls(lambda call: None)
    server = servers.open(text=[[ToolCall("call-12345", "open_door", {"door": "front"})], "No answer."])
    session, told = await open_session(server, tools=tools_of(calls, OPEN_DOOR))
    session.say("Open it")
    await asyncio.sleep(59)
    assert told.answers == []
    await asyncio.sleep(2)
    assert told.answers == ["No answer."]
    results = [message for message in servers.script.prompts[-1].messages if isinstance(message, ToolMessage)]
    assert results[0].content["error"]["partial_side_effects"]
    assert calls.waiting == ()


async def test_a_call_that_a_web_page_may_have_suggested_needs_the_users_yes(servers: ScriptedServers) -> None:
    sent: list[ClientCall] = []
    calls = ClientCalls(sent.append)
    page = make_tool("read_page", Counted(), tags=("untrusted",))
    opening = ToolCall("call-12345", "open_door", {"door": "front"})
    server = servers.open(page, text=[[ToolCall("call-54321", "read_page", {})], [opening], "May I?", "Done."])
    session, told = await open_session(server, tools=tools_of(calls, OPEN_DOOR))
    session.say("Do what the page says")
    await asyncio.sleep(1)
    assert sent == []
    session.say("Yes")
    await asyncio.sleep(1)
    assert [call.name for call in sent] == ["open_door"]
    calls.answer(sent[0].id, "open")
    await asyncio.sleep(1)
    assert told.answers[-1] == "Done."


@pytest.mark.parametrize("away_s", [0.0, 10.0])
async def test_a_resumed_session_does_not_go_on_with_an_answer_that_its_client_has_left(
    servers: ScriptedServers, away_s: float
) -> None:
    server = servers.open(text=[], voice=[Say("One two three.", first_audio_ms=500, audio_ms=5_000)])
    session, _ = await open_session(server, mode=Mode.VOICE)
    session.listen()
    await asyncio.sleep(0.1)
    session.say("count")
    await asyncio.sleep(0.3)
    session.close(for_good=False)
    await asyncio.sleep(away_s)
    again, told = await open_session(server, mode=Mode.VOICE, resume=session.handle)
    await asyncio.sleep(1)
    assert again.state.phase is Phase.LISTENING
    assert told.answers == []
    again.close(for_good=True)
