"""`POST /api/chat`, through the routes, with the offline assistant or a scripted model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from antiphon.models import bounded
from antiphon.models.base import Event, MessageComplete, ModelError, Prompt, StopReason, TextDelta, TextProfile
from antiphon.protocol import client_messages as c
from antiphon.security.quota import Kind, Limit, Quota, Rate
from antiphon.server.answer import AnswerCollector
from antiphon.server.chat import DEADLINE_S
from antiphon.server.event_stream import HEARTBEAT, HEARTBEAT_S
from antiphon.server.requests import MAX_BODY_BYTES
from antiphon.session.stored_session import REQUEST_LEASE_MS
from antiphon.storage.base import StoreUnavailable
from antiphon.storage.memory import MemoryDatabase
from antiphon.tools.call import ToolCall
from antiphon.tools.context import Args, Context
from antiphon.tools.registry import Registry
from antiphon.tools.result import Citation, ToolResult, ok
from antiphon.transcript import AssistantMessage, UserMessage
from tests.fakes.calls import Client
from tests.fakes.gates import Counted, make_action, make_tool
from tests.fakes.web import Reader, WebApp, WebApps

BOOK = ToolCall(None, "book", {"text": "noon"})


class SlowModel:
    """Says a word, thinks for long, and says another."""

    profile = TextProfile("slow", needs_network=False)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        yield TextDelta("Well … ")
        await asyncio.sleep(self.seconds)
        yield TextDelta("yes.")
        yield MessageComplete(StopReason.DONE)


class FailingModel:
    profile = TextProfile("failing", needs_network=True)

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        raise ModelError("The model cannot be reached. Is it running?")
        yield


# Answers.


async def test_a_plain_question_is_answered_by_a_tool(offline: Callable[[], WebApp]) -> None:
    answer = (await offline().chat("what is 6 times 7")).json()
    [run] = answer["toolCalls"]
    assert "42" in answer["message"]
    assert (run["name"], run["ok"], run["result"]["result"]) == ("calculate", True, 42)
    assert run["args"]["expression"]
    assert run["duration_ms"] >= 0
    assert set(answer) == {"message", "conversationId", "toolCalls", "citations"}


async def test_a_bare_sum_is_a_question(offline: Callable[[], WebApp]) -> None:
    assert "42" in (await offline().chat("6 * 7")).json()["message"]


async def test_a_text_answer_keeps_addresses_as_written(offline: Callable[[], WebApp]) -> None:
    answer = (await offline().chat("open the website example.org")).json()
    assert answer["message"] == "I've opened example.org on the page."


async def test_a_conversation_continues(apps: WebApps) -> None:
    web = apps.open(text=["Hello, Ann.", "You are Ann."])
    first = (await web.chat("I am Ann")).json()
    second = (await web.chat("who am I", conversation_id=first["conversationId"])).json()
    assert second["conversationId"] == first["conversationId"]
    turns = await web.server.database.conversations.turns(first["conversationId"])
    assert [turn.text.strip() for turn in turns] == ["I am Ann", "Hello, Ann.", "who am I", "You are Ann."]


async def test_the_model_gets_the_earlier_messages(apps: WebApps) -> None:
    web = apps.open(text=["Hello, Ann.", "You are Ann."])
    first = (await web.chat("I am Ann")).json()
    await web.chat("who am I", conversation_id=first["conversationId"])
    before, answered, said = apps.script.prompts[-1].messages
    assert (before, said) == (UserMessage("I am Ann"), UserMessage("who am I"))
    assert answered == AssistantMessage("Hello, Ann. ")


async def test_messages_from_the_socket_are_known(apps: WebApps) -> None:
    web = apps.open(text=["Hello.", "You said hi."])
    client = await Client(web.server).enter()
    await client.write("hi")
    assert client.live is not None
    answer = await web.chat("what did I say", conversation_id=client.live.runner.conversation_id)
    assert answer.json()["message"] == "You said hi."


async def test_no_session_stays_in_memory(apps: WebApps) -> None:
    web = apps.open(text=["Hello."])
    await web.chat("hi")
    assert web.server.hub.sessions == {}


async def test_citations_of_the_tools_are_in_the_answer(apps: WebApps) -> None:
    async def look(args: Args, context: Context) -> ToolResult:
        return ok({"found": 1}, citations=[Citation("doc:a", "A", "https://example.org/a")])

    web = apps.open(make_tool("look", look), text=[[ToolCall(None, "look", {})], "It is in A."])
    answer = (await web.chat("look")).json()
    assert answer["citations"] == [{"id": "doc:a", "title": "A", "url": "https://example.org/a"}]


# From text to voice.


async def test_voice_is_started_with_the_pending_request(offline: Callable[[], WebApp]) -> None:
    answer = (await offline().chat("start voice mode and tell me a joke")).json()
    assert answer["startVoiceSession"] is True
    assert answer["pendingRequest"] == "tell me a joke"
    assert answer["message"] == "Let's switch to voice mode."
    assert [run["name"] for run in answer["toolCalls"]] == ["start_voice_session"]


async def test_without_a_pending_request_the_field_is_null(offline: Callable[[], WebApp]) -> None:
    answer = (await offline().chat("start voice mode")).json()
    assert answer["startVoiceSession"] is True
    assert answer["pendingRequest"] is None


async def test_a_voice_start_without_text_gets_a_default_text(toolkit: Registry, apps: WebApps) -> None:
    web = apps.open(*toolkit.tools.values(), text=[[ToolCall(None, "start_voice_session", {})], ""])
    assert (await web.chat("talk")).json()["message"] == "Let's switch to voice mode."


async def test_voice_cannot_be_started_from_voice(offline: Callable[[], WebApp]) -> None:
    message = "start voice mode and tell me a joke"
    answer = (await offline().chat(message, capabilities={"voice": True, "messaging": True})).json()
    [run] = answer["toolCalls"]
    assert run["name"] == "start_voice_session"
    assert run["result"]["error"]["type"] == "MODE_RESTRICTED"
    assert run["result"]["error"]["message"] == "start_voice_session only available in text mode"
    assert "startVoiceSession" not in answer
    assert "pendingRequest" not in answer


async def test_a_caller_in_voice_may_be_in_text_the_next_time(offline: Callable[[], WebApp]) -> None:
    web = offline()
    first = (await web.chat("hello", capabilities={"voice": True})).json()
    second = (await web.chat("start voice mode", conversation_id=first["conversationId"])).json()
    assert second["startVoiceSession"] is True


async def test_a_caller_that_shows_no_messages_cannot_start_voice(offline: Callable[[], WebApp]) -> None:
    answer = (await offline().chat("start voice mode", capabilities={"messaging": False})).json()
    assert answer["toolCalls"][0]["result"]["error"]["type"] == "TRANSIENT"
    assert "startVoiceSession" not in answer


# Confirmations.


def booking(apps: WebApps, *, database: Any = None, owner: str = "one") -> tuple[WebApp, Counted]:
    handler = Counted()
    tool = make_action("book", handler, requires_confirmation=True, preview=lambda args: "Book it?")
    return apps.open(tool, text=[[BOOK], "Shall I?", "Booked."], database=database, owner=owner), handler


async def ask_to_book(web: WebApp) -> tuple[str, dict[str, Any]]:
    answer = (await web.chat("book it")).json()
    return answer["conversationId"], answer["confirmationRequest"]


async def test_a_call_that_needs_confirmation_is_asked_about(apps: WebApps) -> None:
    web, handler = booking(apps)
    _, request = await ask_to_book(web)
    assert (request["tool"], request["args"], request["preview"]) == ("book", {"text": "noon"}, "Book it?")
    assert request["expires_at"] > 0
    assert handler.runs == 0


async def test_an_approved_call_runs_once(apps: WebApps) -> None:
    web, handler = booking(apps)
    conversation_id, request = await ask_to_book(web)
    confirm = {"confirmation_token": request["confirmation_token"], "approved": True}
    answer = (await web.chat(conversation_id=conversation_id, confirm=confirm)).json()
    assert answer["message"] == "Booked."
    assert [(run["name"], run["ok"]) for run in answer["toolCalls"]] == [("book", True)]
    again = await web.chat(conversation_id=conversation_id, confirm=confirm)
    assert (again.status_code, again.json()["error"]["code"]) == (404, "confirmation_gone")
    assert handler.runs == 1


async def test_the_caption_of_the_button_is_not_a_second_turn(apps: WebApps) -> None:
    web, handler = booking(apps)
    conversation_id, request = await ask_to_book(web)
    confirm = {"confirmation_token": request["confirmation_token"], "approved": True}
    answer = (await web.chat("yes", conversation_id=conversation_id, confirm=confirm)).json()
    assert (answer["message"], handler.runs) == ("Booked.", 1)


async def test_the_model_is_told_of_the_run_exactly_once(apps: WebApps) -> None:
    web, _ = booking(apps)
    conversation_id, request = await ask_to_book(web)
    confirm = {"confirmation_token": request["confirmation_token"], "approved": True}
    await web.chat(conversation_id=conversation_id, confirm=confirm)
    kinds = [type(message).__name__ for message in apps.script.prompts[-1].messages]
    assert kinds == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "AssistantMessage",
        "AssistantMessage",
        "ToolMessage",
    ]


async def test_a_declined_call_does_not_run(apps: WebApps) -> None:
    web, handler = booking(apps)
    conversation_id, request = await ask_to_book(web)
    confirm = {"confirmation_token": request["confirmation_token"], "approved": False}
    answer = (await web.chat(conversation_id=conversation_id, confirm=confirm)).json()
    assert (answer["message"], handler.runs) == ("All right, I won't do that.", 0)


async def test_a_typed_yes_in_the_next_message_approves(apps: WebApps) -> None:
    web, handler = booking(apps)
    conversation_id, _ = await ask_to_book(web)
    await web.chat("yes", conversation_id=conversation_id)
    assert handler.runs == 1


async def test_another_user_cannot_approve(apps: WebApps) -> None:
    web, handler = booking(apps)
    conversation_id, request = await ask_to_book(web)
    confirm = {"confirmation_token": request["confirmation_token"], "approved": True}
    refused = await web.chat(user="bob", conversation_id=conversation_id, confirm=confirm)
    assert (refused.status_code, handler.runs) == (404, 0)


async def test_a_confirmation_survives_a_restart(apps: WebApps) -> None:
    database = MemoryDatabase()
    web, _ = booking(apps, database=database)
    conversation_id, request = await ask_to_book(web)
    other, handler = booking(apps, database=database, owner="two")
    confirm = {"confirmation_token": request["confirmation_token"], "approved": True}
    await other.chat(conversation_id=conversation_id, confirm=confirm)
    assert handler.runs == 1


async def test_a_confirmation_needs_its_conversation(apps: WebApps) -> None:
    web, _ = booking(apps)
    refused = await web.chat(confirm={"confirmation_token": "t", "approved": True})
    assert refused.status_code == 400
    assert "conversation_id" in refused.json()["error"]["message"]


# Refusals.


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"message": "\xff"}', "not JSON"),
        (b"[" * 10_000, "object"),
        (b'{"message": 1}', "message"),
        (b'{"message": "  "}', "blank"),
        (b"{}", "blank"),
        (b'{"message": "hi", "conversationID": "a"}', "conversationID"),
        (b'{"message": "hi", "capabilities": {"voice": 1}}', "capabilities.voice"),
        (b'{"message": "%b"}' % (b"a" * 8001), "8000"),
    ],
)
async def test_bad_input_is_refused_with_an_explanation(apps: WebApps, body: bytes, told: str) -> None:
    refused = await apps.open(text=[]).http.post("/api/chat", content=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "bad_request"
    assert told in refused.json()["error"]["message"]


async def test_a_body_beyond_the_limit_is_refused(apps: WebApps) -> None:
    refused = await apps.open(text=[]).http.post("/api/chat", content=b" " * (MAX_BODY_BYTES + 1))
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")


async def test_a_stranger_is_refused(apps: WebApps) -> None:
    refused = await apps.open(text=["Hello."]).chat("hi", user="stranger")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"] == "Bearer"


async def test_another_users_conversation_is_reported_as_unknown(apps: WebApps) -> None:
    web = apps.open(text=["Hello."])
    mine = (await web.chat("hi")).json()["conversationId"]
    others = await web.chat("hi", user="bob", conversation_id=mine)
    nobodys = await web.chat("hi", user="bob", conversation_id="nothing")
    assert others.status_code == nobodys.status_code == 404
    assert others.json() == nobodys.json()


async def test_a_blocked_user_learns_when_the_block_ends(apps: WebApps) -> None:
    web = apps.open(text=["Hello."])
    await web.server.database.blocks.block("ann", 1 << 60, "Enough.")
    refused = await web.chat("hi")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "blocked")
    assert refused.json()["timeout"]["until"] == 1 << 60
    assert int(refused.headers["retry-after"]) > 0


async def test_the_answer_that_starts_a_block_reports_it(toolkit: Registry, apps: WebApps) -> None:
    args = {"duration_seconds": 60, "farewell_message": "Goodbye."}
    web = apps.open(*toolkit.tools.values(), text=[[ToolCall(None, "ignore_user", args)], "Goodbye."])
    # Not to show messages is no way round the block.
    answer = (await web.chat("insult", capabilities={"messaging": False})).json()
    assert answer["timeout"]["duration_seconds"] == 60
    assert (await web.chat("sorry")).status_code == 403


async def test_a_model_that_fails_is_a_bad_gateway(apps: WebApps) -> None:
    web = apps.open(text=FailingModel())
    refused = await web.chat("hi")
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "model_failed")
    assert "Is it running?" in refused.json()["error"]["message"]
    assert await web.server.database.conversations.get(refused.json()["conversationId"], "ann") is not None


async def test_too_many_requests_are_told_when_to_retry(apps: WebApps) -> None:
    quota = Quota({Kind.CONNECTION: Limit(user=Rate(0.1, 1))})
    web = apps.open(text=["Hello."], deps={"quota": quota})
    await web.chat("hi")
    refused = await web.chat("hi")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")


async def test_an_answer_that_takes_too_long_is_abandoned(apps: WebApps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_TURN_S", DEADLINE_S * 3)
    web = apps.open(text=SlowModel(DEADLINE_S * 2))
    refused = await web.chat("hi")
    assert (refused.status_code, refused.json()["error"]["code"]) == (504, "deadline")
    assert web.server.hub.sessions == {}
    turns = await web.server.database.conversations.turns(refused.json()["conversationId"])
    assert [turn.text.strip() for turn in turns] == ["hi", "Well …"]


# Two at once.


async def test_the_second_of_two_concurrent_requests_is_told_to_wait(apps: WebApps) -> None:
    web = apps.open(text=SlowModel(1))
    id = (await web.chat("hi")).json()["conversationId"]
    answers = await asyncio.gather(web.chat("one", conversation_id=id), web.chat("two", conversation_id=id))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert (await web.chat("three", conversation_id=id)).status_code == 200
    turns = await web.server.database.conversations.turns(id)
    assert [turn.role for turn in turns] == ["user", "assistant"] * 3


async def test_a_conversation_that_is_answered_on_the_socket_is_busy(apps: WebApps) -> None:
    web = apps.open(text=SlowModel(5))
    client = await Client(web.server).enter()
    await client.say(c.TextMessage("hi"), seconds=1)
    assert client.live is not None
    refused = await web.chat("hello", conversation_id=client.live.runner.conversation_id)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")


async def test_a_request_to_another_process_is_told_to_wait_for_the_first(apps: WebApps) -> None:
    # The first takes longer than a lease holds without being renewed.
    one = apps.open(text=SlowModel(REQUEST_LEASE_MS / 1000 + 10))
    two = apps.open(text=["Two."], database=one.server.database, owner="two")
    id = (await one.chat("hi")).json()["conversationId"]
    first = asyncio.create_task(one.chat("one", conversation_id=id))
    await asyncio.sleep(REQUEST_LEASE_MS / 1000 + 5)
    refused = await two.chat("two", conversation_id=id)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")
    assert refused.headers["retry-after"] == "1"
    assert (await first).status_code == 200
    assert (await two.chat("two", conversation_id=id)).status_code == 200, "the lease was released with the answer"


async def test_the_first_requests_of_a_conversation_in_two_processes_do_not_meet(apps: WebApps) -> None:
    one = apps.open(text=SlowModel(1))
    two = apps.open(text=SlowModel(1), database=one.server.database, owner="two")
    client = await Client(one.server).enter()
    await client.write("hi")
    assert client.live is not None
    id = client.live.runner.conversation_id
    answers = await asyncio.gather(one.chat("one", conversation_id=id), two.chat("two", conversation_id=id))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert [turn.role for turn in await one.server.database.conversations.turns(id)] == ["user", "assistant"] * 2


async def test_a_conversation_that_is_answered_on_the_socket_of_another_process_is_busy(apps: WebApps) -> None:
    one = apps.open(text=SlowModel(5))
    two = apps.open(text=["Two."], database=one.server.database, owner="two")
    client = await Client(one.server).enter()
    await client.say(c.TextMessage("hi"), seconds=1)
    assert client.live is not None
    id = client.live.runner.conversation_id
    refused = await two.chat("hello", conversation_id=id)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")
    await asyncio.sleep(5)
    assert (await two.chat("hello", conversation_id=id)).status_code == 200


async def test_a_process_that_died_in_mid_request_blocks_the_conversation_until_its_lease_is_over(
    apps: WebApps,
) -> None:
    dead = apps.open(text=SlowModel(1))
    heir = apps.open(text=["One.", "Two."], database=dead.server.database, owner="heir")
    id = (await heir.chat("hi")).json()["conversationId"]
    assert await dead.server.hub.begin_request("ann", id, AnswerCollector()) is not None
    # From now on it renews nothing.
    await dead.server.hub.aclose()
    assert (await heir.chat("hello", conversation_id=id)).status_code == 409
    await asyncio.sleep(REQUEST_LEASE_MS / 1000)
    assert (await heir.chat("hello", conversation_id=id)).status_code == 200


async def test_a_lease_that_could_not_be_released_does_not_block_its_own_process(
    apps: WebApps, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = apps.open(text=["One.", "Two."])

    async def fail(session_id: str, lease_token: int, until_ms: int) -> bool:
        raise StoreUnavailable("The database is away.")

    monkeypatch.setattr(web.server.database.sessions, "renew", fail)
    id = (await web.chat("hi")).json()["conversationId"]
    assert (await web.chat("hello", conversation_id=id)).status_code == 200


async def test_a_stopping_server_refuses_with_an_explanation(apps: WebApps) -> None:
    web = apps.open(text=SlowModel(10))
    asking = asyncio.create_task(web.chat("hi"))
    await asyncio.sleep(1)
    await web.server.hub.aclose()
    assert ((await asking).status_code, (await asking).json()["error"]["code"]) == (503, "unavailable")


async def test_a_client_that_goes_away_cancels_its_turn(apps: WebApps) -> None:
    web = apps.open(text=SlowModel(60))
    reader = Reader(web, {"message": "hi"}, accept="application/json")
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    await reader.go_away()
    assert asyncio.get_running_loop().time() - began < 1
    assert web.server.hub.sessions == {}


# Events.


async def test_events_are_protocol_messages_and_the_answer_comes_last(offline: Callable[[], WebApp]) -> None:
    reader = Reader(offline(), {"message": "start voice mode and tell me a joke"})
    await reader.task
    names = [name for name, _ in reader.events]
    assert names == [
        "state",
        "transcript",
        "tool_call",
        "voice_session_start",
        "tool_result",
        "response_chunk",
        "response",
        "generation_complete",
        "state",
        *(name for name in names if name == "turn_metrics"),
        "done",
    ]
    assert all(data["type"] == name for name, data in reader.events[:-1])
    assert reader.events[-1][1]["pendingRequest"] == "tell me a joke"


async def test_events_have_the_event_stream_content_type(apps: WebApps) -> None:
    reader = Reader(apps.open(text=["Hello."]), {"message": "hi"})
    await reader.task
    headers = dict(reader.sent[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in headers


async def test_events_come_while_the_answer_is_generated(apps: WebApps) -> None:
    reader = Reader(apps.open(text=SlowModel(10)), {"message": "hi"})
    await asyncio.sleep(1)
    assert reader.events[-1][0] == "response_chunk"
    assert reader.events[-1][1]["text"] == "Well … "
    await reader.task


async def test_a_silent_answer_has_a_heartbeat(apps: WebApps) -> None:
    reader = Reader(apps.open(text=SlowModel(HEARTBEAT_S * 2.5)), {"message": "hi"})
    await reader.task
    assert reader.text.count(HEARTBEAT.decode()) == 2


async def test_a_reader_that_goes_away_cancels_its_turn(apps: WebApps) -> None:
    web = apps.open(text=SlowModel(60))
    reader = Reader(web, {"message": "hi"})
    await asyncio.sleep(1)
    await reader.go_away()
    assert web.server.hub.sessions == {}
    [conversation] = await web.server.database.conversations.list("ann", 10)
    turns = await web.server.database.conversations.turns(conversation.id)
    assert [turn.text.strip() for turn in turns] == ["hi", "Well …"]


async def test_a_failure_is_the_last_event(apps: WebApps) -> None:
    reader = Reader(apps.open(text=FailingModel()), {"message": "hi"})
    await reader.task
    assert reader.events[-1][0] == "done"
    assert reader.events[-1][1]["error"]["code"] == "model_failed"


async def test_an_immediate_refusal_has_its_status_and_no_events(apps: WebApps) -> None:
    reader = Reader(apps.open(text=[]), {"message": "hi", "conversation_id": "nothing"})
    await reader.task
    assert reader.sent[0]["status"] == 404
