"""The model and the store remember the same: what the user said, and what the user heard of an answer."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from antiphon.models.live import Timings
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.gates import Counted, make_action, make_tool
from tests.fakes.scripted_live import PROFILE, Barge, Call, GoOn, Hear, Say, Step

LONG = Say("One two three four. Five six seven eight.", audio_ms=4_000)


async def call(servers: ScriptedServers, *script: Step, tools: Any = (), **options: Any) -> Client:
    """A client that has spoken the first turn of the script."""
    client = await Client(servers.open(*tools, text=[], voice=script, **options)).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(0.82)
    return client


async def stored(client: Client) -> list[tuple[str, str]]:
    turns = await client.server.database.conversations.turns(client.last(s.Session).conversation_id)
    return [(turn.role, turn.text) for turn in turns if turn.text]


def kept(client: Client) -> list[object]:
    assert client.live is not None
    return list(client.live.runner.writer.transcript.messages)


async def test_an_interrupted_answer_is_truncated_everywhere_to_what_was_heard(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("count"), LONG)
    await client.settle(3)
    await client.say(c.Interrupt(played_ms=1_000))
    assert servers.voice.heard == ["One two"]
    assert servers.voice.messages == kept(client) == [UserMessage("count"), AssistantMessage("One two")]
    assert await stored(client) == [("user", "count"), ("assistant", "One two")]


async def test_a_barge_in_truncates_the_answer_too(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("count"), LONG, Barge(after_ms=2_000))
    await client.settle(5)
    assert client.states[-2:] == ["interrupted", "listening"]
    assert servers.voice.heard == ["One two three four."]
    assert servers.voice.messages == kept(client)
    assert await stored(client) == [("user", "count"), ("assistant", "One two three four.")]


async def test_an_answer_dropped_before_any_of_it_was_heard_is_forgotten(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("count"), replace(LONG, first_audio_ms=2_000))
    await client.settle(1)
    assert client.every(s.ResponseChunk)
    await client.say(c.Interrupt())
    assert servers.voice.heard == [""]
    assert servers.voice.messages == kept(client) == [UserMessage("count")]
    assert await stored(client) == [("user", "count")]


async def test_tool_calls_of_a_dropped_answer_are_remembered(servers: ScriptedServers) -> None:
    script = (Hear("read it"), Call("read_it"), replace(LONG, first_audio_ms=2_000))
    client = await call(servers, *script, tools=[make_tool("read_it")])
    await client.settle(1)
    await client.say(c.Interrupt())
    assert [type(message) for message in servers.voice.messages] == [type(message) for message in kept(client)]
    assert len(servers.voice.messages) == 3


async def test_an_answer_heard_to_the_end_is_kept_whole(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("count"), LONG)
    await client.settle(15)
    assert servers.voice.heard == []
    assert await stored(client) == [("user", "count"), ("assistant", LONG.text)]


async def test_in_text_mode_everything_delivered_counts_as_read(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["One two three.", "Yes."])).enter()
    await client.write("count", seconds=0)
    for _ in range(20):
        await asyncio.sleep(0)
        if client.every(s.ResponseChunk):
            break
    await client.say(c.Interrupt())
    await client.write("really?")
    said = next(m for m in servers.script.prompts[-1].messages if isinstance(m, AssistantMessage))
    assert said.text.split()[0] == "One"


async def test_a_user_who_continues_speaking_has_one_turn(servers: ScriptedServers) -> None:
    whole = "what time is it in Tokyo"
    script = (Hear("what time is it"), GoOn(after_ms=100), Hear(whole, continues=True), Say("Nine.", audio_ms=500))
    client = await call(servers, *script)
    await client.settle(1)
    assert client.states == ["idle", "listening", "processing", "listening"]
    assert client.live is not None
    turn = client.live.runner.tools.turn
    await client.speak(0.82)
    await client.settle(1)
    assert await stored(client) == [("user", whole), ("assistant", "Nine.")]
    assert kept(client)[0] == UserMessage(whole)
    assert client.live.runner.tools.turn == turn, "for the tools it is the same turn"
    finals = [transcript.text for transcript in client.every(s.Transcript) if transcript.is_final]
    assert finals == ["what time is it", whole]


async def test_a_spoken_yes_is_recognized_by_the_session_when_the_model_waits(servers: ScriptedServers) -> None:
    handler = Counted()
    book = make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")
    script = (
        *(Hear("book it"), Call("book"), Say("Shall I?", audio_ms=500)),
        *(Hear("yes please"), Say("Booked.", audio_ms=500)),
    )
    client = await call(servers, *script, tools=[book], profile=replace(PROFILE, waits_to_answer=True))
    await client.settle(10)
    assert (handler.runs, client.last(s.Response).text) == (0, "Shall I?")
    await client.speak(1)
    await client.settle(10)
    assert servers.voice.texts == ["book it", "yes please"]
    assert handler.runs == 1
    assert client.last(s.ConfirmationResolved).outcome is s.Outcome.APPROVED
    assert client.last(s.Response).text == "Booked."


async def test_stop_listening_requests_an_answer_from_a_model_that_waits(servers: ScriptedServers) -> None:
    script = (Hear("good night", after_ms=5_000), Say("Good night.", audio_ms=500))
    client = await call(servers, *script, profile=replace(PROFILE, waits_to_answer=True))
    await client.say(c.StopListening(), seconds=1)
    assert servers.voice.texts == ["good night"]
    await client.settle(10)
    assert client.states == ["idle", "listening", "processing", "speaking", "idle"]


async def test_an_interrupt_after_the_end_of_the_audio_does_not_block_the_session(servers: ScriptedServers) -> None:
    script = (Hear("good night", after_ms=5_000), Say("Good night.", audio_ms=500), Say("Here.", audio_ms=500))
    client = await call(servers, *script, profile=replace(PROFILE, waits_to_answer=True))
    assert client.live is not None
    client.live.runner.post(c.StopListening())
    client.live.runner.post(c.Interrupt())
    await client.settle(1)
    assert client.states[-1] == "idle"
    await client.write("are you there", seconds=20)
    assert client.every(s.Response)
    assert client.states[-1] == "idle"


async def test_the_latency_breakdown_of_a_turn_is_reported(servers: ScriptedServers) -> None:
    heard = Hear("hi", timings=Timings(silence_ms=310, stt_ms=140, wait_ms=200))
    client = await call(servers, heard, Say("Hello.", first_text_ms=100, first_audio_ms=300, audio_ms=500))
    await client.settle(10)
    metrics = client.last(s.TurnMetrics)
    assert (metrics.turn, metrics.end_of_turn_ms, metrics.stt_ms) == (1, 310, 140)
    assert metrics.first_token_ms == pytest.approx(100, abs=20)
    assert metrics.first_audio_ms == pytest.approx(200, abs=20)
    assert metrics.total_ms == pytest.approx(310 + 200 + 300, abs=20)


async def test_without_timings_latency_is_measured_from_the_text(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("hi"), Say("Hello.", first_text_ms=100, first_audio_ms=300, audio_ms=500))
    await client.settle(10)
    metrics = client.last(s.TurnMetrics)
    assert (metrics.end_of_turn_ms, metrics.stt_ms) == (None, None)
    assert metrics.total_ms == pytest.approx(300, abs=20)


async def test_the_timings_of_an_interrupted_turn_are_reported_under_its_number(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("count"), LONG, Say("Yes."))
    await client.settle(1)
    await client.write("stop", seconds=0.1)
    assert client.last(s.TurnMetrics).turn == 1
