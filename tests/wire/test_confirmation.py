"""A call that waits for confirmation: its states are reported once, and its token is never on disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.fakes.toolbox import document, write_tool
from tests.wire.caller import Caller, Message, call
from tests.wire.served import Served, serve

pytestmark = pytest.mark.real_time

WISH: Final = "water the garden"
ARGS: Final = {"place": "garden"}
QUESTION: Final = "Water the garden?"
DONE: Final = "The garden has been watered."
DECLINED: Final = "All right, I won't do that."

HANDLER: Final = """\
import asyncio
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

HERE = Path(__file__).parent


def preview(args: Args) -> str:
    return f"Water the {args['place']}?"


async def execute(args: Args, context: Context) -> ToolResult:
    with (HERE / "watered").open("a") as lines:
        lines.write(args["place"] + "\\n")
    while (HERE / "closed").exists():
        await asyncio.sleep(0.02)
    return ok({"watered": args["place"]}, spoken=f"The {args['place']} has been watered.")
"""


def write_garden(folder: Path) -> Path:
    """A tool that asks before it runs, and waits while there is a file `closed` beside it."""
    place = {"type": "string", "description": "What is watered."}
    return write_tool(
        folder / "tools",
        "water_plants",
        category="action",
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=True,
        parameters={
            "type": "object",
            "additionalProperties": False,
            "required": ["place"],
            "properties": {"place": place},
        },
        files={
            "handler.py": HANDLER,
            "doc.md": document("water_plants", '{"place": "garden"}'),
            "sentences.yaml": 'data:\n  - sentences: ["[please] water the {place}"]\n',
        },
    )


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_garden(tmp_path_factory.mktemp("garden"))


@pytest.fixture(scope="module")
def served(garden: Path) -> Iterator[Served]:
    with serve(garden.parents[1]) as served:
        yield served


async def ask_to_water(caller: Caller) -> Message:
    """The question shown to the user."""
    assert await caller.ask(WISH) == QUESTION
    assert await caller.is_answered()
    return caller.every("confirmation_request")[-1]


async def press(caller: Caller, question: Message, *, approved: bool) -> list[Message]:
    """All messages after the button was pressed, until the session is idle again."""
    mark = len(caller.received)
    await caller.send("confirm", confirmation_token=question["confirmation_token"], approved=approved)
    await caller.until("confirmation_resolved")
    await caller.until("state", state="idle")
    assert await caller.is_answered()
    return caller.received[mark:]


def of_type(messages: list[Message], type: str) -> list[Message]:
    return [message for message in messages if message["type"] == type]


def said(messages: list[Message]) -> list[str]:
    return [message["text"].strip() for message in of_type(messages, "response")]


async def test_a_call_its_question_and_its_result_share_one_id(served: Served) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        question = await ask_to_water(caller)
        [made] = caller.every("tool_call")
        [waiting] = caller.every("tool_result")
        assert waiting["result"]["error"]["type"] == "CONFIRMATION_REQUIRED"
        received = await press(caller, question, approved=True)
    [result] = of_type(received, "tool_result")
    assert made["id"] is not None
    assert {made["id"], waiting["id"], question["id"], result["id"]} == {made["id"]}
    assert (question["args"], made["args"]) == (ARGS, ARGS)
    assert (result["ok"], result["result"]) == (True, {"watered": "garden"})


async def test_calls_of_different_turns_have_different_ids(served: Served) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        first, second = await ask_to_water(caller), await ask_to_water(caller)
    assert first["id"] != second["id"]


async def test_only_the_outcome_of_an_approval_is_spoken_and_only_once(served: Served) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        received = await press(caller, await ask_to_water(caller), approved=True)
        assert said(received) == [DONE]
        assert [message["outcome"] for message in of_type(received, "confirmation_resolved")] == ["approved"]
        assert await caller.ask("what is 2 plus 3") == "2 plus 3 is 5."


async def test_a_typed_yes_settles_the_question_and_the_outcome_is_spoken_once(served: Served) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        question = await ask_to_water(caller)
        mark = len(caller.received)
        assert await caller.ask("yes please") == DONE
        received = caller.received[mark:]
    [result] = of_type(received, "tool_result")
    assert result["id"] == question["id"]
    kinds = [message["type"] for message in received]
    assert kinds.index("confirmation_resolved") < kinds.index("tool_result")


async def test_a_declined_call_gets_one_friendly_sentence_and_no_second_result(served: Served, garden: Path) -> None:
    watered = garden / "watered"
    before = watered.read_text() if watered.exists() else ""
    async with call(served.url, {"mode": "text"}) as caller:
        received = await press(caller, await ask_to_water(caller), approved=False)
    assert said(received) == [DECLINED]
    assert [message["outcome"] for message in of_type(received, "confirmation_resolved")] == ["denied"]
    assert of_type(received, "tool_result") == []
    assert (watered.read_text() if watered.exists() else "") == before


async def test_a_typed_no_gets_the_same_sentence(served: Served) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        await ask_to_water(caller)
        mark = len(caller.received)
        assert await caller.ask("no thanks") == DECLINED
        received = caller.received[mark:]
    assert [message["outcome"] for message in of_type(received, "confirmation_resolved")] == ["denied"]
    assert of_type(received, "tool_result") == []


async def test_declining_a_used_token_is_reported_as_expired(served: Served) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        question = await ask_to_water(caller)
        await press(caller, question, approved=True)
        await caller.send("confirm", confirmation_token=question["confirmation_token"], approved=False)
        assert (await caller.until("confirmation_resolved"))["outcome"] == "expired"


async def test_a_client_is_answered_while_an_approved_call_runs(served: Served, garden: Path) -> None:
    async with call(served.url, {"mode": "text"}) as caller:
        question = await ask_to_water(caller)
        mark = len(caller.received)
        gate = garden / "closed"
        gate.touch()
        try:
            await caller.send("confirm", confirmation_token=question["confirmation_token"], approved=True)
            await caller.until("confirmation_resolved", outcome="approved")
            assert await caller.is_answered()
            assert of_type(caller.received[mark:], "tool_result") == []
        finally:
            gate.unlink()
        assert (await caller.until("response"))["text"] == DONE


async def chat(served: Served, **body: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{served.port}") as http:
        answer = await http.post("/api/chat", json=body)
        assert answer.status_code == 200, answer.text
        received: dict[str, Any] = answer.json()
        return received


async def answer_over_http(served: Served, approved: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = await chat(served, message=WISH)
    confirm = {"confirmation_token": asked["confirmationRequest"]["confirmation_token"], "approved": approved}
    return asked, await chat(served, conversation_id=asked["conversationId"], confirm=confirm)


async def test_over_http_an_approved_call_is_reported_once_with_its_arguments(served: Served) -> None:
    asked, answer = await answer_over_http(served, approved=True)
    assert (asked["message"], answer["message"]) == (QUESTION, DONE)
    [waiting], [ran] = asked["toolCalls"], answer["toolCalls"]
    assert ran["args"] == ARGS
    assert waiting["id"] == asked["confirmationRequest"]["id"] == ran["id"]
    assert (waiting["ok"], ran["ok"]) == (False, True)


async def test_over_http_a_declined_call_gets_one_friendly_sentence(served: Served) -> None:
    _, answer = await answer_over_http(served, approved=False)
    assert (answer["message"], answer["toolCalls"]) == (DECLINED, [])


def files_with(folder: Path, secret: str) -> list[str]:
    """The data files of a server, including the database log, that contain these words."""
    return [
        path.name for path in (folder / "data").rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]


async def test_a_pending_token_is_not_on_disk_even_after_the_socket_is_lost(served: Served, garden: Path) -> None:
    folder = garden.parents[1]
    async with call(served.url, {"mode": "text"}) as caller:
        question = await ask_to_water(caller)
        caller.socket.transport.abort()
    hello = {"resume": caller.session["resume"], "last_n": question["n"] - 1}
    async with call(served.url, hello) as back:
        again = await back.until("confirmation_request")
        assert again["confirmation_token"] == question["confirmation_token"], "the process still has the question"
        assert await back.is_answered()
        # Once this turn is over, everything before it is stored.
        assert await back.ask("what is 2 plus 3") == "2 plus 3 is 5."
        assert await back.is_answered()
        assert files_with(folder, question["preview"])
        assert files_with(folder, question["confirmation_token"]) == []
        assert said(await press(back, again, approved=True)) == [DONE]


async def test_a_token_sent_to_another_session_is_not_stored_by_it(served: Served, garden: Path) -> None:
    folder = garden.parents[1]
    async with call(served.url, {"mode": "text"}) as caller, call(served.url, {"mode": "text"}) as other:
        question = await ask_to_water(caller)
        await other.ask("what is 2 plus 3")
        await other.send("confirm", confirmation_token=question["confirmation_token"], approved=True)
        assert (await other.until("confirmation_resolved"))["outcome"] == "expired"
        assert await other.ask("what is 3 plus 4") == "3 plus 4 is 7."
        assert await other.is_answered()
        assert files_with(folder, question["confirmation_token"]) == []
        assert said(await press(caller, question, approved=True)) == [DONE]


async def test_another_process_asks_again_with_its_own_token(tmp_path: Path) -> None:
    garden = write_garden(tmp_path)
    with serve(tmp_path) as one, serve(tmp_path) as two:
        async with call(one.url, {"mode": "text"}) as caller:
            question = await ask_to_water(caller)
            caller.socket.transport.abort()
        hello = {"resume": caller.session["resume"], "last_n": caller.received[-1]["n"]}
        async with call(two.url, hello) as back:
            again = await back.until("confirmation_request")
            assert back.every("history"), "a client that begins anew with the history still shows the question"
            changed = {name for name in question if again[name] != question[name]}
            assert changed == {"confirmation_token", "n"}
            for token in (question["confirmation_token"], again["confirmation_token"]):
                assert files_with(tmp_path, token) == []
            await back.send("confirm", confirmation_token=question["confirmation_token"], approved=True)
            assert (await back.until("confirmation_resolved"))["outcome"] == "expired"
            received = await press(back, again, approved=True)
            assert said(received) == [DONE]
            assert [result["id"] for result in of_type(received, "tool_result")] == [question["id"]]
    assert (garden / "watered").read_text() == "garden\n"


async def test_a_typed_yes_settles_a_question_asked_by_another_process(tmp_path: Path) -> None:
    write_garden(tmp_path)
    with serve(tmp_path) as one, serve(tmp_path) as two:
        async with call(one.url, {"mode": "text"}) as caller:
            question = await ask_to_water(caller)
            caller.socket.transport.abort()
        async with call(two.url, {"resume": caller.session["resume"], "last_n": caller.received[-1]["n"]}) as back:
            again = await back.until("confirmation_request", id=question["id"])
            assert await back.ask("yes") == DONE
            [settled] = back.every("confirmation_resolved")
            assert (settled["confirmation_token"], settled["outcome"]) == (again["confirmation_token"], "approved")


async def test_over_http_the_next_process_accepts_the_token_of_the_first(tmp_path: Path) -> None:
    garden = write_garden(tmp_path)
    with serve(tmp_path) as one, serve(tmp_path) as two:
        asked = await chat(one, message=WISH)
        token = asked["confirmationRequest"]["confirmation_token"]
        assert files_with(tmp_path, token) == []
        confirm = {"confirmation_token": token, "approved": True}
        answer = await chat(two, conversation_id=asked["conversationId"], confirm=confirm)
    assert (answer["message"], answer["toolCalls"][0]["args"]) == (DONE, ARGS)
    assert (garden / "watered").read_text() == "garden\n"
