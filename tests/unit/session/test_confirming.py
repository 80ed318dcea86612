"""Confirmations by button at any moment of an answer: the outcome is reported once, when nothing else is being said."""

import asyncio

import pytest

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.gate import DECLINED
from antiphon.tools.result import ToolResult, ok
from antiphon.tools.tool import Tool
from antiphon.transcript import ToolMessage, UserMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.gates import Counted, make_action
from tests.fakes.scripted_live import Call, Hear, Say

BOOK = ToolCall("call_0123456789", "book", {"text": "noon"})


def booking(seconds: float = 0.0) -> tuple[Counted, Tool]:
    async def book(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(seconds)
        return ok("booked")

    handler = Counted(book)
    return handler, make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")


def said(client: Client) -> list[str]:
    return [response.text.strip() for response in client.every(s.Response)]


async def asked_aloud(servers: ScriptedServers, tool: Tool) -> Client:
    """A client in a call, while the question is being spoken."""
    script = (Hear("book it"), Call("book", {"text": "noon"}), Say("Shall I?", audio_ms=4_000), Say("Booked."))
    client = await Client(servers.open(tool, text=[], voice=script)).enter()
    await client.say(c.StartListening(), seconds=0.1)
    await client.speak(1)
    await client.settle(1)
    assert client.states[-1] == "speaking"
    return client


async def test_an_approval_during_the_question_runs_the_call_at_once_and_reports_it_afterwards(
    servers: ScriptedServers,
) -> None:
    handler, book = booking()
    client = await asked_aloud(servers, book)
    await client.say(c.Confirm(client.last(s.ConfirmationRequest).confirmation_token, True), seconds=0.5)
    assert (handler.runs, client.states[-1], said(client)) == (1, "speaking", ["Shall I?"])
    await client.settle(20)
    assert said(client) == ["Shall I?", "Booked."]
    assert [result.ok for result in client.every(s.ToolResult)] == [False, True]


async def test_a_refusal_during_the_question_is_acknowledged_after_it(servers: ScriptedServers) -> None:
    handler, book = booking()
    client = await asked_aloud(servers, book)
    await client.say(c.Confirm(client.last(s.ConfirmationRequest).confirmation_token, False), seconds=0.5)
    assert (client.states[-1], client.last(s.ConfirmationResolved).outcome) == ("speaking", s.Outcome.DENIED)
    await client.settle(20)
    assert said(client) == ["Shall I?", DECLINED]
    assert handler.runs == 0
    assert len(client.every(s.ToolResult)) == 1


@pytest.mark.parametrize("approvals", [1, 2])
async def test_an_interrupted_run_is_reported_once_in_the_next_turn(servers: ScriptedServers, approvals: int) -> None:
    handler, book = booking(seconds=3)
    server = servers.open(book, text=[[BOOK], "Shall I?", "It was booked.", "Nothing else."])
    client = await Client(server).enter()
    await client.write("book it")
    token = client.last(s.ConfirmationRequest).confirmation_token
    for _ in range(approvals):
        await client.say(c.Confirm(token, True), seconds=0.2)
    assert client.states[-1] == "processing"
    await client.say(c.Interrupt(), seconds=5)
    assert said(client) == ["Shall I?"]
    await client.write("and?")
    messages = servers.script.prompts[-1].messages
    assert [message.content for message in messages if isinstance(message, ToolMessage)][1:] == ["booked"]
    assert messages[-1] == UserMessage("and?")
    assert client.live is not None
    assert list(messages) == list(client.live.runner.writer.transcript.messages)[: len(messages)]
    assert [result.ok for result in client.every(s.ToolResult)] == [False, True]
    assert handler.runs == 1
    await client.write("and now?")
    assert said(client) == ["Shall I?", "It was booked.", "Nothing else."]


async def test_the_model_gets_an_approved_call_with_its_arguments_and_its_own_id(servers: ScriptedServers) -> None:
    _, book = booking()
    client = await Client(servers.open(book, text=[[BOOK], "Shall I?", "Booked."])).enter()
    await client.write("book it")
    await client.say(c.Confirm(client.last(s.ConfirmationRequest).confirmation_token, True))
    calls = [call for message in servers.script.prompts[-1].messages for call in getattr(message, "calls", ())]
    assert [call.args for call in calls] == [{"text": "noon"}] * 2
    assert len({call.id for call in calls}) == 2
    assert {result.id for result in client.every(s.ToolResult)} == {BOOK.id}
