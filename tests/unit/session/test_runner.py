"""A session in a process, with scripted and real models, on the virtual clock."""

import asyncio

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, ok
from antiphon.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.fakes.calls import Client, ScriptedServers
from tests.fakes.gates import Counted, make_action, make_tool


async def test_a_client_receives_the_state_and_then_the_session(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[])).enter()
    assert [type(message) for message in client.received] == [s.StateChanged, s.Session]
    assert client.states == ["idle"]
    assert client.last(s.Session).resumed is False


async def test_nothing_is_stored_before_the_first_turn(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."])
    client = await Client(server).enter()
    assert await server.database.conversations.list("ann", 10) == []
    await client.write("hi")
    assert [c.title for c in await server.database.conversations.list("ann", 10)] == ["hi"]


async def test_a_typed_message_is_answered_in_protocol_order(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["Hello there."])).enter()
    await client.write("hi")
    kinds = [type(message) for message in client.received[2:]]
    assert kinds == [
        s.StateChanged,
        s.Transcript,
        s.ResponseChunk,
        s.ResponseChunk,
        s.Response,
        s.GenerationComplete,
        s.StateChanged,
        s.TurnMetrics,
    ]
    assert client.states == ["idle", "processing", "idle"]
    assert client.last(s.Response).text.strip() == "Hello there."
    assert [chunk.is_first for chunk in client.every(s.ResponseChunk)] == [True, False]


async def test_messages_are_numbered_without_a_gap(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["Hello.", "Bye."])).enter()
    await client.write("hi")
    await client.write("bye")
    assert [message.n for message in client.received] == list(range(1, len(client.received) + 1))


async def test_a_tool_call_and_its_result_are_sent_with_the_flyout_between_them(servers: ScriptedServers) -> None:
    async def show(args: Args, context: Context) -> ToolResult:
        return ok({"shown": True}, flyout=Flyout(FlyoutType.CODE, "print()", "python"))

    call = ToolCall("call_0123456789", "show", {"text": "a"})
    client = await Client(servers.open(make_tool("show", show), text=[[call], "Done."])).enter()
    await client.write("show it")
    shown = [m for m in client.received if isinstance(m, s.ToolCall | s.Flyout | s.ToolResult)]
    assert [type(message) for message in shown] == [s.ToolCall, s.Flyout, s.ToolResult]
    assert client.last(s.ToolResult).result == {"shown": True}
    assert client.last(s.ToolCall).id == client.last(s.ToolResult).id == "call_0123456789"
    assert client.last(s.Response).text.strip() == "Done."


async def test_the_conversation_is_stored_with_its_calls(servers: ScriptedServers) -> None:
    server = servers.open(make_tool("read_it"), text=[[ToolCall(None, "read_it", {})], "It is one."])
    client = await Client(server).enter()
    await client.write("read it")
    assert client.live is not None
    messages = client.live.runner.writer.transcript.messages
    assert [type(message) for message in messages] == [UserMessage, AssistantMessage, ToolMessage, AssistantMessage]
    stored = await server.database.conversations.turns(client.last(s.Session).conversation_id)
    assert [turn.role for turn in stored] == ["user", "assistant", "tool", "assistant"]


async def test_a_model_failure_is_reported_and_the_session_continues(servers: ScriptedServers) -> None:
    client = await Client(servers.open()).enter()
    await client.write("hi")
    assert client.last(s.Error).code == "model_failed"
    assert client.states[-1] == "idle"
    await client.say(c.Ping(7))
    assert client.last(s.Pong).t == 7


async def test_an_interrupted_answer_is_void_and_the_next_one_is_complete(servers: ScriptedServers) -> None:
    async def slowly(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(0.9)
        return ok("late")

    calls = [ToolCall(None, "slow", {})]
    server = servers.open(make_tool("slow", slowly), text=[calls, "Second answer."])
    client = await Client(server).enter()
    await client.write("first", seconds=0.1)
    await client.say(c.Interrupt(), seconds=0)
    await client.write("second")
    assert client.last(s.Response).text.strip() == "Second answer."
    assert client.states == ["idle", "processing", "idle", "processing", "idle"]


async def test_settings_are_applied_and_confirmed(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=[])).enter()
    await client.say(c.Settings(voice_speed=150, theme="rose"))
    received = client.last(s.SettingsUpdated)
    assert (received.voice_speed, received.theme, received.volume) == (150, "rose", 80)


async def test_a_dropped_socket_is_resumed_without_loss_or_repetition(servers: ScriptedServers) -> None:
    server = servers.open(text=["One two three.", "Four."])
    client = await Client(server).enter()
    await client.write("count", seconds=0)
    await asyncio.sleep(0)
    seen = list(client.received)
    handle, last_n = client.handle, client.last_n
    client.drop()
    await asyncio.sleep(5)
    back = await Client(server).enter(resume=handle, last_n=last_n)
    assert back.every(s.Session)[0].resumed is True
    numbers = [m.n for m in [*seen, *back.received] if not isinstance(m, s.Session)]
    assert len(numbers) == len(set(numbers))
    text = "".join(m.text for m in [*seen, *back.received] if isinstance(m, s.ResponseChunk))
    assert text.strip() == "One two three."
    await back.write("go on")
    assert back.last(s.Response).text.strip() == "Four."


async def test_a_handle_is_used_up_once_the_client_has_the_next_one(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."])
    client = await Client(server).enter()
    await client.write("hi")
    handle = client.handle
    client.drop()
    first = await Client(server).enter(resume=handle)
    assert first.live is not None
    first.live.settle_handle()
    await first.settle()
    second = await Client(server).enter(resume=handle)
    assert second.last(s.Error).code == "resume_rejected"
    assert second.last(s.Session).resumed is False


async def test_another_users_handle_is_rejected(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."])
    client = await Client(server).enter()
    await client.write("hi")
    mallory = await Client(server, user="mallory").enter(resume=client.handle)
    assert mallory.last(s.Error).code == "resume_rejected"
    assert mallory.last(s.Session).session_id != client.last(s.Session).session_id


async def test_a_second_socket_takes_over_and_the_first_is_notified(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello.", "Again."])
    first = await Client(server).enter()
    await first.write("hi")
    second = await Client(server).enter(resume=first.handle, last_n=first.last_n)
    assert first.link.closed is not None
    assert first.link.closed.code == 4409
    await second.write("more")
    assert second.last(s.Response).text.strip() == "Again."


async def test_another_process_resumes_and_the_first_is_fenced(servers: ScriptedServers) -> None:
    database = MemoryDatabase()
    one = servers.open(text=["Hello.", "From the first."], database=database)
    client = await Client(one).enter()
    await client.write("hi")
    client.drop()
    await asyncio.sleep(1)
    two = servers.open(text=["From the second."], database=database, owner="two")
    back = await Client(two).enter(resume=client.handle, last_n=client.last_n)
    assert back.every(s.Session)[0].resumed is True
    await back.write("and now")
    assert back.last(s.Response).text.strip() == "From the second."
    assert [type(m) for m in servers.script.prompts[-1].messages] == [UserMessage, AssistantMessage, UserMessage]
    assert client.live is not None
    client.live.runner.post(c.TextMessage("am I still there"))
    await asyncio.sleep(1)
    assert client.live.id not in one.hub.sessions


async def test_a_conversation_continues_in_a_new_session(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello.", "I remember."])
    client = await Client(server).enter()
    await client.write("my name is Ann")
    conversation_id = client.last(s.Session).conversation_id
    client.drop(for_good=True)
    await asyncio.sleep(1)
    again = await Client(server).enter(conversation_id=conversation_id)
    assert [turn.content.strip() for turn in again.last(s.History).turns] == ["my name is Ann", "Hello."]
    await again.write("who am I")
    assert UserMessage("my name is Ann") in servers.script.prompts[-1].messages


async def test_clearing_forgets_what_was_said(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello.", "Who?"])
    client = await Client(server).enter()
    await client.write("my name is Ann")
    await client.say(c.ClearConversation())
    await client.write("who am I")
    assert servers.script.prompts[-1].messages == (UserMessage("who am I"),)


async def test_without_engines_voice_is_refused_and_text_continues(servers: ScriptedServers) -> None:
    client = await Client(servers.open(text=["Hello."])).enter()
    await client.say(c.StartListening())
    assert client.last(s.Notice).code == "voice_unavailable"
    await client.write("hi")
    assert client.last(s.Response).text.strip() == "Hello."


async def test_a_confirmation_by_button_runs_the_call_and_reports_it(servers: ScriptedServers) -> None:
    handler = Counted()
    book = make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")
    server = servers.open(book, text=[[ToolCall(None, "book", {})], "Shall I?", "Booked."])
    client = await Client(server).enter()
    await client.write("book it")
    request = client.last(s.ConfirmationRequest)
    assert request.preview == "Book it?"
    await client.say(c.Confirm(request.confirmation_token, approved=True))
    assert handler.runs == 1
    assert client.last(s.ConfirmationResolved).outcome is s.Outcome.APPROVED
    assert client.last(s.Response).text.strip() == "Booked."


async def test_a_blocked_user_is_refused(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."])
    client = await Client(server).enter()
    await server.database.blocks.block("ann", 1 << 60, "Enough.")
    await client.write("hi")
    assert client.last(s.Error).code == "blocked"
    assert client.every(s.Response) == []


async def test_draining_notifies_every_client_and_loses_no_turn(servers: ScriptedServers) -> None:
    database = MemoryDatabase()
    server = servers.open(text=["Hello."], database=database)
    client = await Client(server).enter()
    await client.write("hi", seconds=0)
    await server.hub.drain(5, "The server restarts.")
    assert client.last(s.GoAway).reason == "The server restarts."
    assert client.last(s.Response).text.strip() == "Hello."
    two = servers.open(text=["Back."], database=database, owner="two")
    back = await Client(two).enter(resume=client.handle, last_n=client.last_n)
    assert back.last(s.Session).resumed is True


async def test_history_supplied_by_a_client_is_stored_with_the_first_turn(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello Ann."])
    brought = (c.InitialMessage(c.Role.USER, "I am Ann"), c.InitialMessage(c.Role.ASSISTANT, "Noted."))
    client = await Client(server).enter(initial_messages=brought)
    conversation_id = client.last(s.Session).conversation_id
    assert await server.database.conversations.turns(conversation_id) == []
    await client.write("who am I")
    stored = await server.database.conversations.turns(conversation_id)
    assert [turn.text.strip() for turn in stored] == ["I am Ann", "Noted.", "who am I", "Hello Ann."]
    assert servers.script.prompts[-1].messages[0] == UserMessage("I am Ann")


async def test_a_typed_yes_approves_and_the_question_is_settled(servers: ScriptedServers) -> None:
    handler = Counted()
    book = make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")
    server = servers.open(book, text=[[ToolCall(None, "book", {})], "Shall I?", "Booked."])
    client = await Client(server).enter()
    await client.write("book it")
    await client.write("yes please")
    assert handler.runs == 1
    assert client.last(s.ConfirmationResolved).outcome is s.Outcome.APPROVED
    assert client.last(s.Response).text.strip() == "Booked."


async def test_an_action_that_outlived_its_turn_is_reported_in_the_next(servers: ScriptedServers) -> None:
    async def slowly(args: Args, context: Context) -> ToolResult:
        await asyncio.sleep(3)
        return ok("sent")

    calls = [ToolCall("call_0123456789", "send", {})]
    server = servers.open(make_action("send", slowly), text=[calls, "It was sent."])
    client = await Client(server).enter()
    await client.write("send it", seconds=1)
    await client.say(c.Interrupt(), seconds=5)
    await client.write("and?")
    assert client.last(s.ToolResult).result == "sent"
    received = [m for m in servers.script.prompts[-1].messages if isinstance(m, ToolMessage)]
    assert [message.content for message in received] == ["sent"]


async def test_messages_received_after_goodbye_are_not_started(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."] * 20, voice=[])
    for _ in range(20):
        client = await Client(server).enter(mode=c.Mode.TEXT)
        await client.write("hi", seconds=0.01)
        assert client.live is not None
        task = client.live.task
        client.drop(for_good=True)
        for _ in range(3):
            client.live.runner.post(c.StartVoice())
            client.live.runner.post(c.TextMessage("more"))
        await client.settle(1)
        assert task is not None
        assert task.done()
    assert servers.voice.context is None
    assert server.hub.sessions == {}


async def test_a_session_that_ends_while_its_model_closes_is_removed(servers: ScriptedServers) -> None:
    server = servers.open(text=["Hello."], voice=[])
    client = await Client(server).enter(mode=c.Mode.TEXT)
    await client.write("hi")
    assert client.live is not None
    task = client.live.task
    assert task is not None
    client.live.runner.post(c.StartVoice())
    # At this moment the text model is being closed to switch to voice.
    while servers.voice.context is None and not task.cancelling():
        await asyncio.sleep(0)
        task.cancel()
    await client.settle(1)
    assert task.done()
