"""What other programs have a session say and ask, in a chat and in a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.models.live import LiveProfile
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.announcements import PASSED_ON, Announcements
from antiphon.tools.call import ToolCall
from antiphon.tools.result import Citation, ok
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.gates import Counted, make_action, make_tool
from tests.fakes.scripted_live import PROFILE, WAITING, Call, Hear, Say

BOOK = ToolCall("call_0123456789", "book", {"text": "noon"})


def booking() -> tuple[Counted, Tool]:
    handler = Counted()
    return handler, make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")


async def chat(servers: ScriptedServers, *tools: Tool, text: list[Any] | None = None) -> Client:
    return await Client(servers.open(*tools, text=text or [])).enter(mode=c.Mode.TEXT)


async def call(servers: ScriptedServers, *script: Any, tool: Tool | None = None, profile: LiveProfile) -> Client:
    tools = () if tool is None else (tool,)
    client = await Client(servers.open(*tools, text=[], voice=script, profile=profile)).enter()
    await client.say(c.StartListening(), seconds=0.1)
    return client


def announcements(client: Client) -> Announcements:
    assert client.live is not None
    return client.live.runner.announcements


@asynccontextmanager
async def asking(client: Client, question: str = "Which colour?") -> AsyncIterator["asyncio.Task[str]"]:
    task = asyncio.create_task(announcements(client).ask(question))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def said(client: Client) -> list[str]:
    return [message.text.strip() for message in client.every(s.Response)]


async def test_in_a_chat_what_is_said_is_a_message_of_the_conversation(servers: ScriptedServers) -> None:
    client = await chat(servers)
    announcements(client).add("Dinner is ready.", in_text=True)
    await client.settle(1)
    assert said(client) == ["Dinner is ready."]
    assert client.states == ["idle", "processing", "idle"]
    assert client.live is not None
    stored = await client.server.database.conversations.turns(client.live.runner.conversation_id)
    assert [(turn.role, turn.text.strip(), turn.spoken) for turn in stored] == [
        ("assistant", "Dinner is ready.", False)
    ]


async def test_in_a_chat_a_reminder_is_no_message_of_the_assistant(servers: ScriptedServers) -> None:
    client = await chat(servers)
    announcements(client).add("Your pasta timer is done.")
    announcements(client).add("Dinner is ready.", in_text=True)
    await client.settle(1)
    assert client.live is not None
    messages = client.live.runner.writer.transcript.messages
    assert [each.text.strip() for each in messages if isinstance(each, AssistantMessage)] == ["Dinner is ready."]


@pytest.mark.parametrize("profile", [PROFILE, WAITING])
async def test_in_a_call_it_is_spoken(servers: ScriptedServers, profile: LiveProfile) -> None:
    client = await call(servers, profile=profile)
    announcements(client).add("Dinner is ready.", in_text=True)
    await client.settle(3)
    assert said(client) == ["Dinner is ready."]
    assert "speaking" in client.states


async def test_in_a_chat_the_next_message_is_the_answer_and_the_model_is_not_asked(servers: ScriptedServers) -> None:
    client = await chat(servers)
    async with asking(client) as answer:
        await client.settle(1)
        await client.write("the blue one", seconds=1)
        assert answer.result() == "the blue one"
    assert said(client) == ["Which colour?", PASSED_ON]
    assert servers.script.prompts == []
    await client.write("hello", seconds=1)
    assert said(client)[-1] == "The end."


async def test_in_a_call_the_next_words_are_the_answer_and_the_model_is_not_asked(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("the blue one"), profile=WAITING)
    async with asking(client) as answer:
        await client.settle(3)
        await client.say(c.PlaybackDone())
        await client.speak(1)
        await client.settle(3)
        assert answer.result() == "the blue one"
    assert said(client) == ["Which colour?", PASSED_ON]
    assert servers.voice.texts == []


async def test_a_question_waits_for_the_turn_under_way_whose_words_are_not_its_answer(servers: ScriptedServers) -> None:
    script = (Hear("what time is it"), Say("It is noon.", audio_ms=1_000), Hear("blue"))
    client = await call(servers, *script, profile=WAITING)
    await client.speak(1)
    async with asking(client) as answer:
        await client.settle(2)
        await client.say(c.PlaybackDone(), seconds=3)
        assert said(client) == ["It is noon.", "Which colour?"]
        assert not answer.done()
        await client.say(c.PlaybackDone())
        await client.speak(1)
        await client.settle(3)
        assert answer.result() == "blue"


async def test_a_question_that_nobody_waits_for_while_it_is_said_takes_no_answer(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("what time is it"), Say("It is noon.", audio_ms=500), profile=WAITING)
    async with asking(client):
        await client.settle(0.05)
        assert client.states[-1] == "processing"
    await client.settle(3)
    await client.say(c.PlaybackDone())
    await client.speak(1)
    await client.settle(5)
    assert said(client) == ["Which colour?", "It is noon."]
    assert len(announcements(client)) == 0


async def test_a_question_that_nobody_waits_for_any_more_is_not_said(servers: ScriptedServers) -> None:
    client = await call(servers, Hear("what time is it"), Say("It is noon.", audio_ms=1_000), profile=WAITING)
    await client.speak(1)
    async with asking(client):
        await client.settle(0.1)
    await client.settle(2)
    await client.say(c.PlaybackDone(), seconds=5)
    assert said(client) == ["It is noon."]


@pytest.mark.parametrize("profile", [PROFILE, WAITING])
async def test_a_yes_to_another_question_does_not_approve_a_call(
    servers: ScriptedServers, profile: LiveProfile
) -> None:
    handler, book = booking()
    script = (Hear("book it"), Call("book"), Say("Shall I?", audio_ms=500), Hear("yes"), Say("Fine.", audio_ms=500))
    client = await call(servers, *script, tool=book, profile=profile)
    await client.speak(1)
    await client.settle(10)
    assert said(client) == ["Shall I?"]
    async with asking(client, "Do you like pizza?") as answer:
        await client.settle(3)
        await client.say(c.PlaybackDone())
        await client.speak(1)
        await client.settle(5)
        assert answer.result() == "yes"
    assert handler.runs == 0


async def test_a_yes_after_an_announcement_does_not_approve_what_was_asked_before_it(servers: ScriptedServers) -> None:
    handler, book = booking()
    script = (Hear("book it"), Call("book"), Say("Shall I?", audio_ms=500), Hear("yes"), Say("Fine.", audio_ms=500))
    client = await call(servers, *script, tool=book, profile=WAITING)
    await client.speak(1)
    await client.settle(10)
    announcements(client).add("Here's your reminder: did you call your mother?")
    await client.settle(5)
    await client.say(c.PlaybackDone())
    await client.speak(1)
    await client.settle(5)
    assert handler.runs == 0
    await client.say(c.Confirm(client.last(s.ConfirmationRequest).confirmation_token, True))
    assert handler.runs == 1, "the button still approves it"


async def test_an_announcement_has_not_the_sources_of_the_answer_before_it(servers: ScriptedServers) -> None:
    async def look(args: Any, context: Any) -> Any:
        return ok({"text": "noon"}, citations=[Citation("Clocks", "https://clocks.example")])

    client = await chat(servers, make_tool("look", look), text=[[ToolCall("call_1", "look", {})], "It is noon."])
    await client.write("what time is it", seconds=1)
    announcements(client).add("Dinner is ready.", in_text=True)
    await client.settle(1)
    messages = client.every(s.Response)
    assert [len(message.citations or ()) for message in messages] == [1, 0]


async def test_words_over_a_question_that_nobody_has_heard_are_not_its_answer(servers: ScriptedServers) -> None:
    client = await call(servers, profile=WAITING)
    async with asking(client) as answer:
        while not client.every(s.GenerationComplete):
            await client.settle(0.05)
        await client.say(c.Interrupt(played_ms=0), seconds=0)
        await client.write("what time is it", seconds=1)
        assert not answer.done()
        await client.settle(10)
        assert servers.voice.said.count("Which colour?") == 2
        await client.say(c.PlaybackDone())
        await client.write("the blue one", seconds=3)
        assert answer.result() == "the blue one"
