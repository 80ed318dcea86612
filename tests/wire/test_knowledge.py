"""A whole server with the offline assistant and a knowledge base, which another process fills while it runs."""

from pathlib import Path

import httpx2
import pytest

from tests.e2e.terminal import Terminal
from tests.wire.caller import call
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

QUESTION = "how many days of vacation do we have"
COLOUR = "which colour has the sky"
ANSWER = "According to “Vacation”: Every employee has 28 days of paid vacation a year."
WORDS = {"embeddings": False}


def add(folder: Path, text: str = "Every employee has 28 days of paid vacation a year.\n") -> None:
    (folder / "vacation.txt").write_text(text)
    shown = Terminal(folder).run("kb", "add", "vacation.txt", ANTIPHON_KNOWLEDGE__EMBEDDINGS="false")
    assert shown.code == 0, shown.err


async def test_a_question_is_answered_with_its_source_once_a_record_was_added(tmp_path: Path) -> None:
    with serve(tmp_path, knowledge=WORDS) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            assert (await caller.ask(COLOUR)).startswith("I don't know that.")
            assert caller.every("tool_call") == []
            add(tmp_path)
            assert await caller.ask(QUESTION) == ANSWER
            assert caller.every("response")[-1]["citations"] == [
                {"id": "doc:vacation", "title": "Vacation", "url": None}
            ]
            assert [each["name"] for each in caller.every("tool_call")] == ["kb_search"]
            add(tmp_path, "Every employee has 30 days of paid vacation a year.\n")
            assert "30 days" in await caller.ask(QUESTION)


async def test_a_question_that_no_record_answers_is_not_answered(tmp_path: Path) -> None:
    add(tmp_path)
    with serve(tmp_path, knowledge=WORDS) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            for question in ("what is the capital of france", COLOUR):
                assert (await caller.ask(question)).startswith("I don't know that.")
                assert caller.every("response")[-1]["citations"] == []
            assert (await caller.ask("blargh frobnicate")).startswith("I don't know how to do that.")
            assert len(caller.every("tool_call")) == 2
        assert served.failures == []


async def test_the_chat_endpoint_has_the_source_of_this_answer_alone(tmp_path: Path) -> None:
    add(tmp_path)
    with serve(tmp_path, knowledge=WORDS) as served:
        async with httpx2.AsyncClient(base_url=served.http) as http:
            first = (await http.post("/api/chat", json={"message": QUESTION})).json()
            assert (first["message"], first["citations"]) == (
                ANSWER,
                [{"id": "doc:vacation", "title": "Vacation", "url": None}],
            )
            again = {"message": "what time is it", "conversation_id": first["conversationId"]}
            assert (await http.post("/api/chat", json=again)).json()["citations"] == []
            record = (await http.get(f"/api/kb/{first['citations'][0]['id']}")).json()
            assert record["body"] == "Every employee has 28 days of paid vacation a year."


async def test_a_guess_at_another_tool_runs_if_no_record_answers(tmp_path: Path) -> None:
    add(tmp_path)
    with serve(tmp_path, knowledge=WORDS) as served:
        async with call(served.url, {"mode": "text"}) as caller:
            await caller.ask("how many days of school are there until christmas")
            assert [each["name"] for each in caller.every("tool_call")] == ["kb_search", "time_until"]


async def test_without_a_token_a_server_that_requires_one_shows_no_record(tmp_path: Path) -> None:
    add(tmp_path)
    assert Terminal(tmp_path).run("token", "new").code == 0
    with serve(tmp_path, knowledge=WORDS, server={"auth": "required"}) as served:
        async with httpx2.AsyncClient(base_url=served.http) as http:
            assert (await http.get("/api/kb")).status_code == 401
            assert (await http.post("/api/kb", json={"title": "x", "body": "y"})).status_code == 401
