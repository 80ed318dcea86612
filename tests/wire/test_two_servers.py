"""Two servers on one Postgres: to their clients, they are one."""

import asyncio
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal

from tests.fakes.chat_server import ChatServer, words
from tests.fakes.image_api import PNG, openai_answer
from tests.fakes.postgres import PostgresServer
from tests.wire.caller import call
from tests.wire.served import UNLIMITED, Served, serve
from tests.wire.test_recording import SCRIPT, fetch, files, record_call, recordings
from tests.wire.test_store_down import SUM, post

pytestmark = pytest.mark.real_time

STORY = "Make up a story about a lighthouse keeper."


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """A model that takes a second for a story. The offline assistant answers sums at once."""
    slow = replace(words("Once upon a time."), pause_s=0.2)
    chat = ChatServer(lambda request: slow, hides_warm_ups=True)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(chat):
        yield f"openai:{chat.url}#big"


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, model: str
) -> Iterator[tuple[Served, Served]]:
    """Two servers, each with a data folder of its own, as on two machines."""
    sections: dict[str, Any] = {"storage": {"url": postgres.make_database()}, "model": {"text": model}}
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    with (
        serve(folders[0], limits=UNLIMITED, **sections) as first,
        serve(folders[1], limits=UNLIMITED, **sections) as second,
    ):
        yield first, second
        assert first.failures == second.failures == []


async def test_a_session_of_one_server_goes_on_at_another(pair: tuple[Served, Served]) -> None:
    first, second = pair
    async with call(first.url, {"mode": "text"}) as caller:
        assert "5" in await caller.ask(SUM)
        await caller.socket.close(1001)
    hello = {"resume": caller.session["resume"], "last_n": caller.received[-1]["n"]}
    async with call(second.url, hello) as again:
        assert again.session["resumed"] is True
        assert again.session["session_id"] == caller.session["session_id"]
        assert "7" in await again.ask("What is 3 plus 4?")


async def test_the_energy_of_the_sessions_of_both_servers_is_shown_and_set(pair: tuple[Served, Served]) -> None:
    async with (
        call(pair[0].url, {"mode": "text"}) as here,
        call(pair[1].url, {"mode": "text"}) as there,
        httpx2.AsyncClient(base_url=pair[0].http, trust_env=False) as http,
    ):
        for caller in (here, there):
            assert "5" in await caller.ask(SUM)
        told = (await http.get("/api/energy")).json()
        nodes = {each["session_id"]: each["node"] for each in told["sessions"] if each["connected"]}
        assert set(nodes) == {here.session["session_id"], there.session["session_id"]}
        assert len(set(nodes.values())) == 2
        changed = (await http.put("/api/energy", json={"mode": "text", "level": 1})).json()
        assert {each["session_id"]: (each["node"], each["text"]) for each in changed["sessions"]} == {
            id: (node, 1) for id, node in nodes.items()
        }
        for caller in (here, there):
            assert (await caller.until("energy"))["level"] == 1
        pair[1].process.send_signal(signal.SIGSTOP)
        try:
            told = (await http.get("/api/energy")).json()
            assert [each["session_id"] for each in told["sessions"]] == [here.session["session_id"]]
            assert told["unreached"] == [nodes[there.session["session_id"]]]
        finally:
            pair[1].process.send_signal(signal.SIGCONT)


async def test_a_conversation_is_answered_by_one_server_at_a_time(pair: tuple[Served, Served]) -> None:
    async with call(pair[0].url, {"mode": "text"}) as caller:
        assert "5" in await caller.ask(SUM)
        id = caller.session["conversation_id"]
        answers = await asyncio.gather(*(post(each, STORY, conversation_id=id) for each in pair))
        [refused] = [each for each in answers if each.status_code != 200]
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")
        assert refused.headers["retry-after"] == "1"
        for served in pair:
            assert "5" in (await post(served, SUM, conversation_id=id)).json()["message"]
        await caller.send("text_message", text=STORY)
        await caller.until("response_chunk")
        assert (await post(pair[1], SUM, conversation_id=id)).json()["error"]["code"] == "busy"
        await caller.until("state", state="idle")
        assert await caller.is_answered(), "the end of the turn is stored"
        assert "5" in (await post(pair[1], SUM, conversation_id=id)).json()["message"]


async def test_pictures_and_recordings_of_one_server_are_shown_and_deleted_by_another(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    def rows(table: str) -> int:
        [(count,)] = postgres.execute(f"SELECT count(*) FROM {table}", postgres_url.rpartition("/")[2])
        return int(count)

    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
    async with ChatServer(lambda _: openai_answer()) as service:
        sections: dict[str, Any] = {
            "storage": {"url": postgres_url},
            "images": {"model": f"openai:{service.url}#flux"},
            "recording": {"calls": "always"},
        }
        with (
            serve(folders[0], voice=SCRIPT, **sections) as first,
            serve(folders[1], voice=SCRIPT, **sections) as second,
        ):
            async with call(first.url, {"mode": "text"}) as caller:
                await caller.ask("draw me a picture of a lighthouse at dusk")
            drawn, [shown] = caller.session["conversation_id"], caller.every("image")
            talk = await record_call(first)
            [entry] = await recordings(second, talk)
            own = played = await fetch(first, entry["url"])
            for _ in range(400):
                # The sound is stored a moment after the call.
                played = await fetch(second, entry["url"])
                if played.status_code == 200:
                    break
                await asyncio.sleep(0.05)
            part = await fetch(second, entry["url"], Range="bytes=100-299")
            picture = await fetch(second, shown["url"])
            deleted = [await fetch(second, f"/api/conversations/{id}", "DELETE") for id in (drawn, talk)]
            gone = [await fetch(first, path) for path in (shown["url"], entry["url"])]
        assert first.failures == second.failures == []
    assert (played.content, part.content) == (own.content, own.content[100:300])
    assert picture.content == PNG
    assert [each.status_code for each in (*deleted, *gone)] == [204, 204, 404, 404]
    assert [rows(table) for table in ("images", "recordings", "recording_parts")] == [0, 0, 0]
    assert files(folders[1]) == []
